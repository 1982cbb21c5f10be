"""Names that a user gives, checked before a cluster is asked for them.

A name with a slash would be another path of the API, which `kubectl proxy` refuses by itself.
"""

from __future__ import annotations

import string

from scheduler_plugin.asking.view_errors import CannotTellError

_PODS = frozenset({"pod", "pods", "po"})
_LETTERS = frozenset(string.ascii_lowercase + string.digits + "-")
_LONGEST = 253


def pod_name(word: str) -> str:
    """NAME of `NAME`, or of `pod/NAME` as kubectl accepts it.

    Raises:
        CannotTellError: If no pod can be called so.
    """
    kind, slash, name = word.rpartition("/")
    if slash and kind.lower() not in _PODS:
        raise CannotTellError(f'"{word}" is no pod: give NAME or pod/NAME.')
    return _checked(name, "pod")


def namespace_name(word: str) -> str:
    """The word itself.

    Raises:
        CannotTellError: If no namespace can be called so.
    """
    return _checked(word, "namespace")


def _checked(name: str, kind: str) -> str:
    if not _is_object_name(name):
        raise CannotTellError(
            f'"{name}" is no name of a {kind}: names have lower-case letters, digits, "-" and ".".'
        )
    return name


def _is_object_name(text: str) -> bool:
    """Whether it is a DNS subdomain. Without a pattern, whose compilation takes longer."""
    labels = text.split(".")
    return len(text) <= _LONGEST and all(
        label and label.strip("-") == label and _LETTERS.issuperset(label) for label in labels
    )
