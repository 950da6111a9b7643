"""The version of the distribution, read by the build and by the kernel cache."""

__version__ = "0.1.0"
