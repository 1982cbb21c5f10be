"""What a fake raises where a process would have died."""


class KilledError(BaseException):
    """Raised in the middle of our program; no `except Exception` stops it."""
