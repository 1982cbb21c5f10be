"""Names that a user gives, checked before a cluster is asked for them.

A name with a slash would be another path of the API, which `kubectl proxy` refuses by itself.
"""

from __future__ import annotations

import string
from dataclasses import replace

from scheduler_plugin.asking.view_errors import CannotTellError
from scheduler_plugin.asking.view_settings import ViewSettings

_PODS = frozenset({"pod", "pods", "po"})
_LETTERS = frozenset(string.ascii_lowercase + string.digits + "-")
_LONGEST = 253


def checked(settings: ViewSettings) -> ViewSettings:
    """The same settings, with NAME for a `pod/NAME` as kubectl accepts it.

    Raises:
        CannotTellError: If a name can be that of no object.
    """
    _check(settings.reading.release_namespace, "namespace")
    if settings.namespace:
        _check(settings.namespace, "namespace")
    if settings.view != "why":
        return settings
    kind, slash, name = settings.name.rpartition("/")
    if slash and kind.lower() not in _PODS:
        raise CannotTellError(f'"{settings.name}" is no pod: give NAME or pod/NAME.')
    _check(name, "pod")
    return replace(settings, name=name)


def _check(name: str, kind: str) -> None:
    if not _is_object_name(name):
        raise CannotTellError(
            f'"{name}" is no name of a {kind}: names have lower-case letters, digits, "-" and ".".'
        )


def _is_object_name(text: str) -> bool:
    """A DNS subdomain. Without a pattern, whose compilation takes longer."""
    labels = text.split(".")
    return len(text) <= _LONGEST and all(
        label and label.strip("-") == label and _LETTERS.issuperset(label) for label in labels
    )
