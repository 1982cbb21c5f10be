"""Who is asked after which change, and that nobody is kept who waits no more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from scheduler_plugin.accounting.world_changes import ClaimChanged, OtherChanged, PodChanged
from scheduler_plugin.cluster.waiters import Waiters
from scheduler_plugin.objects.names import ClaimUid, PodUid

CAM, POD = ClaimUid("uid-of-cam"), PodUid("uid-of-a")


class Asked:
    """A condition that counts how often it was asked."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.times = 0

    def __call__(self) -> bool:
        self.times += 1
        return self.answers.pop(0) if self.answers else False


async def waiting(
    waiters: Waiters, condition: Callable[[], bool], *about: str
) -> asyncio.Task[bool]:
    task = asyncio.create_task(waiters.wait_for(condition, 5, about))
    await asyncio.sleep(0)
    return task


async def test_change_of_another_object_asks_nobody() -> None:
    waiters, condition = Waiters(), Asked(False, True)
    task = await waiting(waiters, condition, CAM, POD)

    waiters.changed(ClaimChanged(ClaimUid("another")))
    waiters.changed(PodChanged(PodUid("another")))
    assert condition.times == 1
    waiters.changed(PodChanged(POD))

    assert await task
    assert len(waiters) == 0


async def test_change_of_any_object_asks_who_names_none() -> None:
    waiters, condition = Waiters(), Asked(False, False, True)
    task = await waiting(waiters, condition)

    waiters.changed(ClaimChanged(CAM))
    waiters.changed(PodChanged(POD))

    assert await task


async def test_change_of_a_class_asks_everybody() -> None:
    waiters = Waiters()
    tasks = [await waiting(waiters, Asked(False, True), uid) for uid in (CAM, POD)]

    waiters.changed(OtherChanged())

    assert await asyncio.gather(*tasks) == [True, True]


async def test_what_is_true_is_not_waited_for() -> None:
    waiters = Waiters()

    assert await waiters.wait_for(Asked(True), 5, (CAM,))
    assert len(waiters) == 0


async def test_one_who_gave_up_is_forgotten() -> None:
    waiters = Waiters()
    task = await waiting(waiters, Asked(), CAM)
    patient = await waiting(waiters, Asked(False, True), CAM)

    task.cancel()
    await asyncio.wait([task])
    waiters.changed(ClaimChanged(CAM))

    assert await patient
    assert len(waiters) == 0


async def test_time_is_over() -> None:
    waiters = Waiters()

    assert not await waiters.wait_for(Asked(), 0.001, (CAM,))
    assert len(waiters) == 0
