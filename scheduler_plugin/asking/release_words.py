"""What the plugin of a release was told, as far as it decides who is charged.

The release may be of another version, with flags that this one does not know, and without some that
this one has. Only flags that change who is charged matter here; any other is left alone.
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


def plugin_words(deployment: Any) -> tuple[str, ...]:
    """The flags of the plugin's container that change who is charged; () where there is none.

    Each as one word, `--flag=value`, however it was written.
    """
    try:
        plugin = _container(deployment)
        words = [*(plugin.get("command") or ()), *(plugin.get("args") or ())]
    except (KeyError, TypeError, StopIteration):
        return ()
    joined = _joined([str(word) for word in words])
    return tuple(word for word in joined if word.partition("=")[0] in MATTER)


def plugin_image(deployment: Any) -> str:
    """The image of the plugin's container; "" where there is none."""
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
