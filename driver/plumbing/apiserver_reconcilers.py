"""Reconcilers of the driver: `kube`'s, whose calls are counted in the driver's figures.

    change ──add──► queue ──► reconcile(key) ──► Done | After(seconds)

Most look at everything in each call, so that their queue has one key, `ALL`: however many changes
add it meanwhile, one call more is made. What a call raises has it made again, later and later, and
not sooner for a change: devices that flap must not flood an API server that is unwell.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from typing import Any, TypeVar

from driver.plumbing.apiserver import BACKOFF
from driver.plumbing.prometheus import PASS_SECONDS, PASSES, counted
from kube.api import Change, Deleted, Reconciler, Result

K = TypeVar("K", bound=Hashable)

ALL = "all"
"""The key of a reconciler that looks at everything in each call."""

DISAGREEMENT_SECONDS = 5.0
"""How soon an own object that another client changed is put right."""


def keyed_reconciler(
    name: str, reconcile: Callable[[K], Awaitable[Result]], *, workers: int
) -> Reconciler[K]:
    """One whose keys are worked on beside each other.

    Args:
        name: Of what it brings about, for logs and metrics.
        reconcile: What it raises is tried again.
        workers: How many keys are worked on at one time.
    """

    async def measured(key: K) -> Result:
        with PASS_SECONDS.labels(name).time(), counted(PASSES, name):
            return await reconcile(key)

    return Reconciler(name, measured, workers=workers, backoff=replace(BACKOFF, patient=True))


def whole_reconciler(name: str, reconcile: Callable[[], Awaitable[Result]]) -> Reconciler[str]:
    """One that looks at everything in each call; its first call is made without a change."""

    async def reconcile_all(_: str) -> Result:
        return await reconcile()

    made = keyed_reconciler(name, reconcile_all, workers=1)
    made.add(ALL)
    return made


def put_right(change: Change[Any], queue: Reconciler[str], key: str = ALL) -> None:
    """What was deleted is written anew at once, and what another wrote only after a while.

    During a rolling update two drivers may write the same objects and not agree: each would
    answer every write of the other.
    """
    if isinstance(change, Deleted):
        queue.add(key)
    else:
        queue.add_after(key, DISAGREEMENT_SECONDS)
