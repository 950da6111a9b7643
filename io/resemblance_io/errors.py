"""The one error a user of the I/O layer has to know."""


class InputError(ValueError):
    """What was asked for cannot be done with what was given.

    The message is one line and complete: what is wrong, where (file, row, column), what to do.
    The command line prints it as it is and exits with 2.
    """


def one_line(error: BaseException) -> str:
    """Return the first line of an error's text, or its type where it has none."""
    said = error.strerror if isinstance(error, OSError) else None
    if said is None and len(error.args) > 1 and all(isinstance(a, str) for a in error.args):
        said = "; ".join(error.args)  # pandas adds to what Arrow says
    text = (said or str(error)).strip()
    return text.splitlines()[0].rstrip(" .:") if text else type(error).__name__
