"""Why a view has nothing to show: a call says so in one sentence, and its status tells which."""

from __future__ import annotations


class NotThereError(Exception):
    """Raised where what is asked about does not exist."""


class CannotTellError(Exception):
    """Raised where a file, a cluster, or what the release was told, cannot be read."""
