"""The flags of a release's plugin that decide which queue is charged.

The release may be of another version, with flags that this one does not know, and without some that
this one has. All flags that do not change charges are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

MATTER = frozenset(
    {
        *("--queue-label", "--default-queue", "--non-preemptible-priority", "--orphan-policy"),
        *("--owner-lifetime", "--scheduler-name", "--pod-groups"),
    }
)


def plugin_flags(deployment: Any) -> tuple[str, ...]:
    """The flags of the plugin's container that change charges; () if there is no container.

    Each flag is one word, `--flag=value`, also if it was written as two.
    """
    try:
        plugin = _container(deployment)
        words = [*(plugin.get("command") or ()), *(plugin.get("args") or ())]
    except (KeyError, TypeError, StopIteration):
        return ()
    joined = _joined([str(word) for word in words])
    return tuple(word for word in joined if word.partition("=")[0] in MATTER)


def plugin_image(deployment: Any) -> str:
    """The image of the plugin's container; "" if there is no container."""
    try:
        return str(_container(deployment)["image"])
    except (KeyError, TypeError, StopIteration):
        return ""


def _container(deployment: Any) -> Any:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return next(c for c in containers if c["name"] == "scheduler-plugin")


def _joined(words: Sequence[str]) -> Iterator[str]:
    pending = ""
    for word in words:
        if pending:
            yield f"{pending}={word}"
            pending = ""
        elif word.startswith("--") and "=" not in word:
            pending = word
        elif word.startswith("--"):
            yield word
