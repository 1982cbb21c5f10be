"""Checks the names that a user gives before they become paths of the API.

A name with a slash would be another path; only `kubectl proxy` refuses it.
"""

from __future__ import annotations

import string

from scheduler_plugin.asking.view_errors import CannotAnswerError

_PODS = frozenset({"pod", "pods", "po"})
_LETTERS = frozenset(string.ascii_lowercase + string.digits + "-")
_LONGEST = 253


def pod_name(word: str) -> str:
    """The name in `NAME`, or in `pod/NAME`, which kubectl accepts, too.

    Raises:
        CannotTellError: If a pod cannot have the name.
    """
    kind, slash, name = word.rpartition("/")
    if slash and kind.lower() not in _PODS:
        raise CannotAnswerError(f'"{word}" does not name a pod: give NAME or pod/NAME.')
    return _checked(name, "pod")


def namespace_name(word: str) -> str:
    """The word itself.

    Raises:
        CannotTellError: If a namespace cannot have the name.
    """
    return _checked(word, "namespace")


def _checked(name: str, kind: str) -> str:
    if not _is_object_name(name):
        raise CannotAnswerError(
            f'"{name}" is not a valid name of a {kind}: names have lower-case letters, digits, "-"'
            ' and ".".'
        )
    return name


def _is_object_name(text: str) -> bool:
    """Whether the text is a DNS subdomain; to compile a pattern would take longer."""
    labels = text.split(".")
    return len(text) <= _LONGEST and all(
        label and label.strip("-") == label and _LETTERS.issuperset(label) for label in labels
    )
