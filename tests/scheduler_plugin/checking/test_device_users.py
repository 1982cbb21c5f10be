"""Who uses devices of Moorage's, before it is uninstalled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from kube.calls.api import ApiClient, GoneError, NotFoundError
from kube.calls.apiserver_reads import Page
from kube.resources import Selection
from scheduler_plugin import in_use_main
from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.checking.device_users import (
    BROKERS_HEAD,
    CLAIMS_HEAD,
    MOST_NAMED,
    SLOTS_HEAD,
    DeviceUsers,
)
from scheduler_plugin.in_use_main import run_in_use
from scheduler_plugin.settings import InUseSettings


def claim(name: str, *pods: str, driver: str = "moorage.dev") -> Any:
    devices = {"results": [{"driver": driver, "pool": "p", "device": "d", "request": "r"}]}
    reserved = [{"resource": "pods", "name": pod, "uid": pod} for pod in pods]
    return {
        "metadata": {"namespace": "default", "name": name},
        "status": {"allocation": {"devices": devices}, "reservedFor": reserved},
    }


def instance(**usage: str) -> Any:
    return {
        "metadata": {"namespace": "lab", "name": "camera-317a9c"},
        "spec": {"deviceUsage": usage},
    }


def users(claims: Iterable[Any] = (), instances: Iterable[Any] = ()) -> DeviceUsers:
    found = DeviceUsers()
    for body in claims:
        found.add_claim(body)
    for body in instances:
        found.add_instance(body)
    return found


def test_pods_of_claims_and_nodes_of_slots_are_named() -> None:
    claims = (claim("door", "first", "second"), claim("window"), claim("gpu", "x", driver="gpu"))
    instances = (instance(a="node-a", b="", c="C:camera-0:node-b", d="node-a"),)

    assert users(claims, instances).lines() == (
        CLAIMS_HEAD,
        "  ResourceClaim default/door: Pods first, second",
        SLOTS_HEAD,
        "  Instance lab/camera-317a9c: 3 slots, of nodes node-a, node-b",
    )


def test_a_podgroup_that_a_claim_is_reserved_for_is_named_as_such() -> None:
    claims = claim("door"), claim("window", "first")
    for body in claims:
        group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train"}
        body["status"]["reservedFor"].append({**group, "uid": "train"})

    assert users(claims).lines() == (
        CLAIMS_HEAD,
        "  ResourceClaim default/door: PodGroup train",
        "  ResourceClaim default/window: Pod first and PodGroup train",
    )


def test_of_the_device_plugin_s_pods_it_is_not_said_that_they_cannot_end() -> None:
    """A kubelet ends them without the plugin; claims it has to unprepare by the driver."""
    (head, _) = users((), (instance(a="node-a"),)).lines()

    assert "cannot terminate" not in head
    assert "cannot terminate" in users((claim("door", "first"),)).lines()[0]


def test_of_many_the_first_are_named_and_the_others_counted() -> None:
    pods = [f"p{n}" for n in range(7)]
    found = users(claim(f"c{n}", *pods) for n in range(MOST_NAMED + 3))

    assert len(found.lines()) == MOST_NAMED + 2
    assert found.lines()[1].endswith("c0: Pods p0, p1, p2, p3, p4 and 2 more")
    assert found.lines()[-1] == "  and 3 more ResourceClaims"


def test_what_was_never_allocated_is_used_by_no_pod() -> None:
    bare = {"metadata": {"namespace": "default", "name": "door"}}

    assert not users((bare, {**bare, "status": {}}), ({**bare, "spec": {}},))


def broker(name: str, configuration: str = "camera", **fields: Any) -> Any:
    labels = {"controller": "akri.sh", "akri.sh/configuration": configuration}
    return {"metadata": {"namespace": "lab", "name": name, "labels": labels}, **fields}


def test_brokers_are_named_by_their_configurations() -> None:
    found = DeviceUsers()
    found.add_broker("Job", broker("scan-1-job", "scan"))
    for name in ("camera-b-pod", "camera-a-pod"):
        found.add_broker("Pod", broker(name, status={"phase": "Pending"}))
    found.add_broker("Job", broker("camera-a-2-job"))

    assert found.lines() == (
        BROKERS_HEAD,
        "  Configuration lab/camera: 3 brokers, Pods camera-b-pod, camera-a-pod and Job"
        " camera-a-2-job",
        "  Configuration lab/scan: 1 broker, Job scan-1-job",
    )


@pytest.mark.parametrize(
    "over",
    [
        broker("p", status={"phase": "Succeeded"}),
        broker("p", status={"phase": "Failed"}),
        broker("j", status={"conditions": [{"type": "Complete", "status": "True"}]}),
        broker("j", status={"conditions": [{"type": "Failed", "status": "True"}]}),
        broker("p") | {"metadata": broker("p")["metadata"] | {"deletionTimestamp": "2026-11-21"}},
        {"metadata": {"namespace": "lab", "name": "p", "labels": {"controller": "akri.sh"}}},
    ],
    ids=["succeeded", "failed", "complete", "failed job", "terminating", "of no Configuration"],
)
def test_what_is_over_or_no_broker_is_not_named(over: Any) -> None:
    found = DeviceUsers()
    found.add_broker("Pod", over)

    assert not found
    assert found.lines() == ()


def test_a_job_that_runs_or_is_suspended_is_named() -> None:
    found = DeviceUsers()
    found.add_broker("Job", broker("a", status={"conditions": [{"type": "Failed"}]}))
    found.add_broker("Job", broker("b", status={"phase": None}))

    assert found.lines()[1:] == ("  Configuration lab/camera: 2 brokers, Jobs a, b",)


class Listed:
    """An API server whose lists come in pages, and that forgets one of them once."""

    def __init__(self, **pages: list[list[Any]]) -> None:
        self._pages = pages
        self.is_to_forget = True

    async def pages(self, selection: Selection) -> AsyncIterator[Page]:
        if (pages := self._pages.get(selection.resource.plural)) is None:
            raise NotFoundError("no such kind")
        for number, items in enumerate(pages):
            if number and self.is_to_forget:
                self.is_to_forget = False
                raise GoneError("the list is too old")
            yield Page(tuple(items), 1)


async def test_lists_are_read_page_by_page_and_anew_where_one_is_gone() -> None:
    server = Listed(resourceclaims=[[claim("door", "first")], [claim("gate", "second")]])

    found = await in_use_main.users_in(cast(ApiClient, server))

    assert [line.split()[1] for line in found.lines()[1:]] == ["default/door:", "default/gate:"]


async def test_brokers_are_looked_for_only_if_asked_for() -> None:
    """Without brokers nobody gave the right to list pods."""
    server = cast(ApiClient, Listed(pods=[[broker("p")]], jobs=[[broker("j")]]))

    assert not await in_use_main.users_in(server)
    found = await in_use_main.users_in(server, brokers=True)

    assert found.lines()[1:] == ("  Configuration lab/camera: 2 brokers, Pod p and Job j",)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[DeviceUsers]:
    """Who uses devices at each look; the last of them stays."""
    found: list[DeviceUsers] = []

    @asynccontextmanager
    async def connect(*_: Any, **__: Any) -> AsyncIterator[None]:
        yield

    async def users_in(_: Any, **__: Any) -> DeviceUsers:
        return found.pop(0) if len(found) > 1 else found[0]

    monkeypatch.setattr(in_use_main, "connect", connect)
    monkeypatch.setattr(in_use_main, "users_in", users_in)
    monkeypatch.setattr(in_use_main, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(in_use_main, "SETTLE_SECONDS", 0.05)
    return found


def given(*words: str) -> InUseSettings:
    settings = parse_settings(["in-use", *words], {})
    assert isinstance(settings, InUseSettings)
    return settings


async def test_who_uses_devices_is_said_with_what_to_do(
    looks: list[DeviceUsers], capsys: pytest.CaptureFixture[str]
) -> None:
    looks.append(users((claim("door", "first"),)))

    assert await run_in_use(given("--remedy=Delete these pods."))

    assert capsys.readouterr().out == (
        f"{CLAIMS_HEAD}\n  ResourceClaim default/door: Pod first\nDelete these pods.\n"
    )


async def test_a_reservation_that_ends_in_a_moment_is_none(
    looks: list[DeviceUsers], capsys: pytest.CaptureFixture[str]
) -> None:
    """The claim of a pod that was deleted is let go by a controller, a little later."""
    looks += [users((claim("door", "first"),)), users()]

    assert not await run_in_use(given())

    assert capsys.readouterr().out == "No pod uses a device of Moorage.\n"


async def test_brokers_refuse_as_users_of_devices_do(
    looks: list[DeviceUsers], capsys: pytest.CaptureFixture[str]
) -> None:
    found = users()
    found.add_broker("Pod", broker("p"))
    looks += [found, users()]
    assert not await run_in_use(given("--brokers"))
    assert capsys.readouterr().out == "No pod uses a device of Moorage, and no broker runs.\n"

    looks[:] = [found]

    assert await run_in_use(given("--brokers", "--remedy=Nothing was uninstalled."))
    assert capsys.readouterr().out == (
        f"{BROKERS_HEAD}\n  Configuration lab/camera: 1 broker, Pod p\nNothing was uninstalled.\n"
    )
