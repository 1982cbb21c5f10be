"""Why a view prints nothing: the command prints one sentence, and its status says which error."""

from __future__ import annotations


class NotThereError(Exception):
    """Raised if an object that is named does not exist."""


class CannotAnswerError(Exception):
    """Raised if a file, a cluster, or the flags of the release cannot be read."""
