"""What can go wrong with a local cluster.

LocalClusterError
  SettingsError        the settings contradict themselves
  MachineError         the machine lacks something, or a system command failed
  BuildError           a program could not be built
  PartError            a part did not start, or died; names its log
  ConditionTimeoutError  a condition did not come true in time
  ApiError             the API server answered with an error status
"""

from __future__ import annotations


class LocalClusterError(Exception):
    """Raised when the local cluster cannot do what was asked; the base of all below."""


class SettingsError(LocalClusterError):
    """Raised when settings cannot work."""


class MachineError(LocalClusterError):
    """Raised when the machine lacks something or a system command fails."""


class BuildError(LocalClusterError):
    """Raised when a program cannot be built."""


class PartError(LocalClusterError):
    """Raised when a part does not start or does not get healthy."""


class ConditionTimeoutError(LocalClusterError):
    """Raised when a condition does not come true within its time limit."""


class ApiError(LocalClusterError):
    """Raised when the API server answers with an error status."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
