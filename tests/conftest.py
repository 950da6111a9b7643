"""What all tests share."""

from pathlib import Path

import pytest
from hypothesis import settings

# the first example of a test may compile a kernel
settings.register_profile("resemblance", deadline=None)
settings.load_profile("resemblance")


@pytest.fixture(scope="session")
def shared():
    """The folder of real data beside the repository, which a newcomer's clone does not have."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not (folder / "data").is_dir():
        pytest.skip(f"needs the data sets of {folder / 'data'}")
    return folder
