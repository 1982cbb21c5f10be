"""A Node says at once what its kubelet was told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

import pytest

from driver.api import NodeName
from driver.device_plugin.slots.apiserver_node_status import NodeStatus
from kube.calls.api import ApiClient, ForbiddenError, WriteOptions
from kube.objects import JsonObject
from kube.resources import ObjectPath

ONE, OTHER = "akri.sh/camera", "akri.sh/camera-8120fe"


@dataclass
class FakeNodeApi:
    """Takes patches of one Node's status; `before` is called while each is under way."""

    patches: list[dict[str, int]] = field(default_factory=list)
    before: Callable[[], object] = lambda: None
    refuses: bool = False

    async def merge_patch(
        self, path: ObjectPath, patch: JsonObject, *, options: WriteOptions
    ) -> JsonObject:
        assert (path.resource.plural, path.name, path.subresource) == ("nodes", "a", "status")
        await asyncio.sleep(0)
        self.before()
        if self.refuses:
            raise ForbiddenError("not allowed")
        amounts = patch["status"]["allocatable"]
        self.patches.append({name: int(amount) for name, amount in amounts.items()})
        return {}


@asynccontextmanager
async def running(api: FakeNodeApi) -> AsyncIterator[NodeStatus]:
    status = NodeStatus(cast(ApiClient, api), NodeName("a"))
    for resource in (ONE, OTHER):
        status.opened(resource)
    task = asyncio.create_task(status.run())
    try:
        yield status
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_lists_that_are_sent_together_are_one_patch() -> None:
    api = FakeNodeApi()
    async with running(api) as status:
        status.sent(ONE, 2)
        status.sent(OTHER, 3)
        await status.says(ONE, 2)

    assert api.patches == [{ONE: 2, OTHER: 3}]


async def test_who_waits_is_served_at_once_and_again_with_what_comes_meanwhile() -> None:
    api = FakeNodeApi()
    async with running(api) as status:
        status.sent(ONE, 2)
        await status.says(ONE, 2)
        api.before = lambda: status.sent(ONE, 1)

        async with asyncio.timeout(0.8):
            await status.says(ONE, 1)

    assert api.patches == [{ONE: 2}, {ONE: 2}, {ONE: 1}]


async def test_what_changes_back_while_it_is_written_is_written_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("driver.device_plugin.slots.apiserver_node_status.PACE_SECONDS", 0.01)
    api = FakeNodeApi()
    async with running(api) as status:
        status.sent(ONE, 2)
        await status.says(ONE, 2)
        api.before = lambda: status.sent(ONE, 2)
        status.sent(ONE, 1)

        async with asyncio.timeout(10):
            while len(api.patches) < 3:  # noqa: ASYNC110  Nobody says when.
                await asyncio.sleep(0.01)

    assert api.patches == [{ONE: 2}, {ONE: 1}, {ONE: 2}]


async def test_a_list_that_says_the_same_again_is_no_patch() -> None:
    api = FakeNodeApi()
    async with running(api) as status:
        status.sent(ONE, 2)
        await status.says(ONE, 2)
        status.sent(ONE, 2)
        status.sent(OTHER, 1)
        await status.says(OTHER, 1)

    assert api.patches == [{ONE: 2}, {OTHER: 1}]


async def test_nobody_waits_for_a_kubelet_that_does_not_watch() -> None:
    api = FakeNodeApi()
    async with running(api) as status:
        status.closed(ONE)

        await status.says(ONE, 1)

    assert api.patches == []


async def test_nobody_waits_for_ever_for_a_kubelet_that_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("driver.device_plugin.slots.apiserver_node_status.URGENT_SECONDS", 0.01)
    api = FakeNodeApi()
    async with running(api) as status:
        await status.says(ONE, 1)

    assert api.patches == []


async def test_what_is_refused_is_left_to_the_kubelet_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    api = FakeNodeApi(refuses=True)
    async with running(api) as status:
        for healthy in (1, 2):
            status.sent(ONE, healthy)
            await status.says(ONE, healthy)
        api.refuses = False
        status.sent(ONE, 3)
        await status.says(ONE, 3)

    assert api.patches == [{ONE: 3}]
    assert [record.message for record in caplog.records] == [
        "the kubelet will write the Node's allocatable: not allowed"
    ]
