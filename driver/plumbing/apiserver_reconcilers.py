"""Reconcilers of the driver: `kube`'s, with the driver's metrics.

    change ──add──► queue ──► reconcile(key) ──► Done | After(seconds)

Most reconcilers process everything in each call, so their queue has one key, `ALL`: any number of
changes during a call leads to one further call. A call that raises is retried with a backoff. A
change does not shorten the backoff, so that flapping devices do not flood a failing API server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from typing import Any, TypeVar

from driver.plumbing.apiserver import BACKOFF
from driver.plumbing.prometheus import RECONCILE_SECONDS, RECONCILES, counted
from kube.reconciling.api import Reconciler, Result
from kube.stores.api import Change, Deleted

K = TypeVar("K", bound=Hashable)

ALL = "all"
"""The key of a reconciler that processes everything in each call."""

DISAGREEMENT_SECONDS = 5.0
"""How soon an own object that another client changed is written again."""


def keyed_reconciler(
    name: str, reconcile: Callable[[K], Awaitable[Result]], *, workers: int
) -> Reconciler[K]:
    """A reconciler whose keys are processed concurrently.

    Args:
        name: Its purpose, for logs and metrics.
        reconcile: Reconciles a key; a key for which it raises is retried.
        workers: How many keys are processed concurrently.
    """

    async def measured(key: K) -> Result:
        with RECONCILE_SECONDS.labels(name).time(), counted(RECONCILES, name):
            return await reconcile(key)

    return Reconciler(name, measured, workers=workers, backoff=replace(BACKOFF, patient=True))


def whole_reconciler(name: str, reconcile: Callable[[], Awaitable[Result]]) -> Reconciler[str]:
    """A reconciler that processes everything in each call; it makes a first call at its start."""

    async def reconcile_all(_: str) -> Result:
        return await reconcile()

    made = keyed_reconciler(name, reconcile_all, workers=1)
    made.add(ALL)
    return made


def put_right(change: Change[Any], queue: Reconciler[str], key: str = ALL) -> None:
    """Queue an own object: a deleted one at once, a changed one after `DISAGREEMENT_SECONDS`.

    During a rolling update two drivers may write the same objects and disagree. Without the delay
    each of them would answer every write of the other.
    """
    if isinstance(change, Deleted):
        queue.add(key)
    else:
        queue.add_after(key, DISAGREEMENT_SECONDS)
