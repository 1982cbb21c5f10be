"""Writes, their preconditions, and Events, on the real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kube.calls.api import (
    AlreadyExistsError,
    ApiClient,
    ConflictError,
    InvalidError,
    NotFoundError,
    Preconditions,
    WriteOptions,
    connect,
)
from kube.events.api import Event, EventRecorder, EventType, ObjectReference
from kube.kinds import CONFIG_MAPS, EVENTS, NODES
from kube.objects import JsonObject
from local_cluster.api import Cluster
from tests.e2e.kube_world import a_config_map, new_namespace

pytestmark = pytest.mark.e2e

ONE = WriteOptions(field_manager="one")
TWO = WriteOptions(field_manager="two")


@pytest.fixture
async def client(apiserver: Cluster) -> AsyncIterator[ApiClient]:
    async with connect(apiserver.kubeconfig) as connected:
        yield connected


@pytest.fixture
async def place(client: ApiClient) -> str:
    return await new_namespace(client)


def value_of(obj: JsonObject) -> str:
    return str(obj["data"]["value"])


async def test_field_of_another_manager_is_a_conflict_until_it_is_forced(
    client: ApiClient, place: str
) -> None:
    path = CONFIG_MAPS.at("a", place)
    await client.apply(path, a_config_map(place, "a", "1"), options=ONE)

    with pytest.raises(ConflictError) as caught:
        await client.apply(path, a_config_map(place, "a", "2"), options=TWO)
    forced = await client.apply(path, a_config_map(place, "a", "2"), force=True, options=TWO)

    assert [cause["field"] for cause in caught.value.causes] == [".data.value"]
    assert value_of(forced) == "2"


async def test_apply_holds_to_its_preconditions(client: ApiClient, place: str) -> None:
    path = CONFIG_MAPS.at("a", place)
    body = a_config_map(place, "a", "1")

    with pytest.raises(ConflictError):  # There is no such object, so it must not be made.
        await client.apply(path, body, preconditions=Preconditions("another"), options=ONE)
    first = await client.apply(path, body, options=ONE)
    for wrong in (Preconditions("another"), Preconditions(resource_version=1)):
        with pytest.raises(ConflictError):
            await client.apply(path, body, preconditions=wrong, options=ONE)
    right = Preconditions(first["metadata"]["uid"], first["metadata"]["resourceVersion"])

    await client.apply(path, body, preconditions=right, options=ONE)


async def test_merge_patch_holds_to_its_preconditions(client: ApiClient, place: str) -> None:
    path = CONFIG_MAPS.at("a", place)
    first = await client.create(CONFIG_MAPS, a_config_map(place, "a", "1"))
    right = Preconditions(first["metadata"]["uid"], first["metadata"]["resourceVersion"])
    patch = {"data": {"value": "2"}}

    for wrong in (Preconditions("another"), Preconditions(resource_version=1)):
        with pytest.raises(ConflictError):
            await client.merge_patch(path, patch, preconditions=wrong)
    second = await client.merge_patch(path, patch, preconditions=right)
    with pytest.raises(ConflictError):
        await client.merge_patch(path, patch, preconditions=right)

    assert value_of(second) == "2"


async def test_delete_holds_to_its_preconditions(client: ApiClient, place: str) -> None:
    path = CONFIG_MAPS.at("a", place)
    first = await client.create(CONFIG_MAPS, a_config_map(place, "a"))

    for wrong in (Preconditions("another"), Preconditions(resource_version=1)):
        with pytest.raises(ConflictError):
            await client.delete(path, preconditions=wrong)
    await client.delete(path, preconditions=Preconditions(first["metadata"]["uid"]))

    with pytest.raises(NotFoundError):
        await client.get(path)


async def test_replace_of_an_old_version_is_a_conflict(client: ApiClient, place: str) -> None:
    path = CONFIG_MAPS.at("a", place)
    first = await client.create(CONFIG_MAPS, a_config_map(place, "a", "1"))
    await client.replace(path, {**first, "data": {"value": "2"}})

    with pytest.raises(ConflictError):
        await client.replace(path, {**first, "data": {"value": "3"}})


async def test_json_patch_whose_test_fails_is_invalid(client: ApiClient, place: str) -> None:
    path = CONFIG_MAPS.at("a", place)
    await client.create(CONFIG_MAPS, a_config_map(place, "a", "1"))
    put = {"op": "replace", "path": "/data/value", "value": "2"}

    with pytest.raises(InvalidError):
        await client.json_patch(path, [{"op": "test", "path": "/data/value", "value": "x"}, put])
    done = await client.json_patch(path, [{"op": "test", "path": "/data/value", "value": "1"}, put])

    assert value_of(done) == "2"


async def test_dry_run_answers_and_stores_nothing(client: ApiClient, place: str) -> None:
    body = a_config_map(place, "a")

    await client.create(CONFIG_MAPS, body, options=WriteOptions(dry_run=True))
    await client.create(CONFIG_MAPS, body)
    with pytest.raises(AlreadyExistsError):
        await client.create(CONFIG_MAPS, body)
    await client.delete(CONFIG_MAPS.at("a", place), options=WriteOptions(dry_run=True))

    assert await client.get(CONFIG_MAPS.at("a", place))


async def test_status_is_written_apart_from_the_rest(client: ApiClient, place: str) -> None:
    await client.create(NODES, {"metadata": {"name": place}})
    patch = {"spec": {"unschedulable": True}, "status": {"phase": "Running"}}

    await client.merge_patch(NODES.at(place, subresource="status"), patch)

    node = await client.get(NODES.at(place))
    assert node["status"]["phase"] == "Running"
    assert "unschedulable" not in node["spec"]
    await client.delete(NODES.at(place))


async def test_list_of_a_label_is_joined_from_its_pages(client: ApiClient, place: str) -> None:
    for number in range(7):
        body = dict(a_config_map(place, f"m{number}"))
        labels = {"odd": str(number % 2)}
        body["metadata"] = {"name": f"m{number}", "namespace": place, "labels": labels}
        await client.create(CONFIG_MAPS, body)

    found = await client.list(CONFIG_MAPS.select(place, label_selector="odd in (1)"), page_size=2)

    assert [item["metadata"]["name"] for item in found.items] == ["m1", "m3", "m5"]


async def test_repeated_event_is_one_event_with_a_count(client: ApiClient, place: str) -> None:
    recorder = EventRecorder(client, "moorage.dev/test", "pod-1")
    running = asyncio.create_task(recorder.run())
    about = ObjectReference(api_version="v1", kind="ConfigMap", name="a", namespace=place)
    event = Event(
        regarding=about, type=EventType.WARNING, reason="Tested", action="Test", note="hello"
    )

    for _ in range(5):
        recorder.record(event)
    async with asyncio.timeout(30):
        events = (await client.list(EVENTS.select(place))).items
        while not events or "series" not in events[0]:
            await asyncio.sleep(0.5)
            events = (await client.list(EVENTS.select(place))).items
    running.cancel()

    [written] = events
    assert written["series"]["count"] == 5
    assert (written["reason"], written["note"]) == ("Tested", "hello")
    assert written["reportingController"] == "moorage.dev/test"
    assert recorder.dropped == 0
