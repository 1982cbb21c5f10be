"""Figures: what they are derived from, and how they are told."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import Counter, Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from driver.api import ClaimUid
from driver.brokers.stored import Stored, stored
from driver.handlers.registrations import HandlerStanding, HandlerState
from driver.instances.inventory import Heard, inventory_of
from driver.kubelet_api.dra.v1 import api_pb2 as v1
from driver.plumbing import prometheus
from driver.plumbing.prometheus import (
    ALLOCATION_SECONDS,
    ALLOCATIONS,
    HANDLERS,
    LEADER,
    RECONCILES,
    Gauge,
)
from driver.preparing.files.prepared import ClaimReference
from driver.preparing.grants.claims import Failure
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.kubelet_plugin import Plugin
from driver.running.arguments import Address, parse_address
from driver.running.monitoring import prometheus_server
from driver.running.monitoring.prometheus_figures import (
    broker_figures,
    cluster_slot_figures,
    handler_figures,
    inventory_figures,
    node_slot_figures,
)
from kube.kinds import PODS
from tests.driver.builders import NODE, a_device
from tests.driver.claim_builders import prepared
from tests.driver.colliding_devices import COLLIDING
from tests.driver.device_plugin.kubelet.test_allocations import IL, SLOT_0, SLOT_1, FakeKubeletSide
from tests.driver.instances.test_inventory import a_verdict
from tests.driver.slot_builders import CAMERA_1, CAMERA_2, NODE_B, some_slots

PAGE = Path(__file__).resolve().parents[4] / "docs" / "metrics.md"


def told(figures: Iterable[Metric]) -> dict[tuple[str, ...], float]:
    """Values by name, without the prefix, and labels."""
    found: dict[tuple[str, ...], float] = {}
    for sample in (sample for figure in figures for sample in figure.samples):
        key = (sample.name.removeprefix("moorage_driver_"), *sample.labels.values())
        assert key not in found, "Prometheus takes no figure twice"
        found[key] = sample.value
    return found


def declared() -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Kind, labels and meaning of all figures that there are, by name."""
    found = {}
    for one in vars(prometheus).values():
        if isinstance(one, Gauge):
            found[one.name] = ("gauge", one.labels, one.meaning)
        elif isinstance(one, Counter | Histogram):
            (described,) = one.describe()
            name = f"{described.name}_total" if isinstance(one, Counter) else described.name
            found[name] = (described.type, one._labelnames, described.documentation)  # noqa: SLF001  The library tells them nowhere else.
    return found


def on_page() -> dict[tuple[str, ...], float]:
    """All figures that the process tells now, by name and labels in the order of their names."""
    families = text_string_to_metric_families(prometheus.page().decode())
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_every_state_of_a_handler_is_told() -> None:
    standings = [
        HandlerStanding("udev", True, HandlerState.ACTIVE),
        HandlerStanding("udev", False, HandlerState.OFFLINE),
        HandlerStanding("udev", False, HandlerState.OFFLINE),
    ]

    assert told(handler_figures(standings)) == {
        ("discovery_handlers", "udev", "embedded", "Waiting"): 0,
        ("discovery_handlers", "udev", "embedded", "Active"): 1,
        ("discovery_handlers", "udev", "embedded", "Offline"): 0,
        ("discovery_handlers", "udev", "external", "Waiting"): 0,
        ("discovery_handlers", "udev", "external", "Active"): 0,
        ("discovery_handlers", "udev", "external", "Offline"): 2,
    }


def test_devices_are_told_of_each_configuration() -> None:
    camera, disk = a_verdict("camera"), a_verdict("disk")
    heard = {
        camera.name: Heard(camera.uid, shared=tuple(map(a_device, COLLIDING))),
        disk.name: Heard(disk.uid),
    }

    assert told(inventory_figures(inventory_of([camera, disk], heard, NODE))) == {
        ("devices", "camera", "false"): 0,
        ("devices", "camera", "true"): 1,
        ("devices", "disk", "false"): 0,
        ("devices", "disk", "true"): 0,
        ("name_collisions", "camera"): 1,
        ("name_collisions", "disk"): 0,
        ("denied_properties", "camera"): 0,
        ("denied_properties", "disk"): 0,
    }
    assert told(inventory_figures(None)) == {}


def test_what_no_container_gets_of_a_device_is_counted() -> None:
    camera = a_verdict("camera")
    odd = {"LD_PRELOAD": "/x.so", "HTTPS_PROXY": "http://10.0.0.1", "FLOOR": "2"}
    devices = [a_device(name, properties=odd) for name in ("a", "b")]
    heard = {camera.name: Heard(camera.uid, tuple(devices))}

    found = told(inventory_figures(inventory_of([camera], heard, NODE)))

    assert found["denied_properties", "camera"] == 4


def test_slots_are_told_of_each_configuration() -> None:
    usage = {f"{CAMERA_1}-0": NODE, f"{CAMERA_1}-1": "node-b"}
    views = [some_slots(CAMERA_1, usage, capacity=4), some_slots(CAMERA_2, capacity=2, nodes=[])]
    configuration = views[0].configuration

    assert told(node_slot_figures(views, NODE)) == {("slots_held", configuration): 1}
    assert told(cluster_slot_figures(views)) == {
        ("instances", configuration, "true"): 1,
        ("instances", configuration, "false"): 1,
        ("slots", configuration): 6,
        ("slots_used", configuration): 2,
        ("akri_instance_count", configuration, "false"): 2,
    }


def test_brokers_are_told_under_both_names() -> None:
    pods = [a_broker(node, phase) for node, phase in ((NODE, "Running"), ("node-b", "Pending"))]

    assert told(broker_figures(pods)) == {
        ("brokers", "camera", "true"): 1,
        ("brokers", "camera", "false"): 1,
        ("akri_broker_pod_count", "camera", NODE): 1,
        ("akri_broker_pod_count", "camera", "node-b"): 1,
    }


def a_broker(node: str, phase: str) -> Stored:
    labels = {"akri.sh/configuration": "camera", "akri.sh/target-node": node}
    metadata = {"name": node, "uid": node, "namespace": "lab", "labels": labels}
    return stored(PODS, {"metadata": metadata, "status": {"phase": phase}})


def test_names_are_those_that_prometheus_asks_for() -> None:
    for name, (kind, _, meaning) in declared().items():
        assert name.startswith(("moorage_driver_", "akri_"))
        assert name.endswith("_total") is (kind == "counter")
        assert name.endswith("_seconds") is (kind == "histogram")
        assert meaning.endswith(".")


def test_what_happens_is_counted_and_measured() -> None:
    before = on_page()
    with ALLOCATION_SECONDS.time():
        ALLOCATIONS.labels("granted").inc()
    with suppress(ValueError), prometheus.counted(RECONCILES, "a test"):
        raise ValueError

    after = on_page()
    granted = ("moorage_driver_allocations_total", "granted")
    measured = ("moorage_driver_allocation_duration_seconds_count",)
    assert after[granted] == before.get(granted, 0) + 1
    assert after[measured] == before[measured] + 1
    assert after["moorage_driver_passes_total", "error", "a test"] == 1
    assert after["process_resident_memory_bytes",] > 0


class FakeClaims:
    """Prepares the claim a, and no other."""

    async def prepare(self, wanted: Iterable[ClaimReference]) -> Mapping[ClaimUid, Any]:
        return {w.uid: prepared(w) if w.name == "a" else Failure("No.") for w in wanted}


async def test_what_the_kubelet_asks_for_is_counted() -> None:
    before, plugin = on_page(), Plugin(cast(KubeletClaims, FakeClaims()))
    claims = [v1.Claim(namespace="default", name=name, uid=name * 8) for name in "abc"]

    await plugin.NodePrepareResources(
        v1.NodePrepareResourcesRequest(claims=claims), cast(Any, None)
    )

    after, name = on_page(), "moorage_driver_claim_requests_total"
    assert after[name, "prepare", "ok"] - before.get((name, "prepare", "ok"), 0) == 1
    assert after[name, "prepare", "error"] - before.get((name, "prepare", "error"), 0) == 2
    calls = ("moorage_driver_claim_request_duration_seconds_count", "prepare")
    assert after[calls] - before.get(calls, 0) == 1


async def test_what_device_plugins_give_is_counted() -> None:
    before, side, name = on_page(), FakeKubeletSide(), "moorage_driver_allocations_total"
    side.slots.stored.by_hand(SLOT_0, NODE_B)

    await side.refusal(IL, [SLOT_0])
    await side.allocate(IL, [SLOT_1])

    after = on_page()
    assert after[name, "granted"] - before.get((name, "granted"), 0) == 1
    assert after[name, "refused"] - before.get((name, "refused"), 0) == 1


def test_a_figure_that_cannot_be_read_keeps_no_other_back() -> None:
    def odd() -> Iterable[Metric]:
        raise KeyError("odd")

    handler = HandlerStanding("shelf", False, HandlerState.ACTIVE)
    reads = (odd, lambda: handler_figures([handler]), lambda: LEADER.single(1))
    with prometheus.SNAPSHOTS.reading(*reads):
        page = on_page()

    assert page["moorage_driver_leader",] == 1
    assert page[HANDLERS.name, "shelf", "external", "Active"] == 1
    assert ("moorage_driver_leader",) not in on_page(), "it is told while it is so"


@asynccontextmanager
async def serving(why: list[str], address: Address) -> AsyncIterator[None]:
    task = asyncio.create_task(prometheus_server.serve(address, lambda: why[0]))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def fetched(port: int, page: str) -> tuple[int, str]:
    """Status and text of a page, as soon as somebody listens."""
    async with aiohttp.ClientSession() as session:
        while True:
            with suppress(aiohttp.ClientConnectionError):
                async with session.get(f"http://127.0.0.1:{port}{page}") as answer:
                    return answer.status, await answer.text()
            await asyncio.sleep(0.01)


@pytest.fixture
def failed_twice(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """When the server could not listen for the second time."""
    start, failures, event = web.TCPSite.start, iter(range(99)), asyncio.Event()

    async def starts(site: web.TCPSite) -> None:
        try:
            await start(site)
        except OSError:
            if next(failures):
                event.set()
            raise

    monkeypatch.setattr(web.TCPSite, "start", starts)
    monkeypatch.setattr(prometheus_server, "AGAIN_SECONDS", 0.01)
    return event


async def test_the_pages_are_served_as_soon_as_the_address_is_free(
    failed_twice: asyncio.Event, caplog: pytest.LogCaptureFixture
) -> None:
    why = ["Not yet."]
    with socket.create_server(("127.0.0.1", 0)) as other:
        port: int = other.getsockname()[1]
        async with serving(why, Address("127.0.0.1", port)):
            await failed_twice.wait()
            other.close()

            assert await fetched(port, "/healthz") == (200, "ok")
            assert await fetched(port, "/readyz") == (503, "Not yet.")
            why[0] = ""
            assert await fetched(port, "/readyz") == (200, "ok")
            status, page = await fetched(port, "/metrics")
            assert (status, "# TYPE moorage_driver_passes_total counter" in page) == (200, True)
            assert (await fetched(port, "/elsewhere"))[0] == 404
    assert caplog.text.count("cannot serve metrics yet") == 1


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8090", Address(None, 8090)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:8090", Address("::1", 8090)),
        ("", None),
    ],
)
def test_addresses(text: str, address: Address | None) -> None:
    assert parse_address(text) == address
    assert str(address or "") == text


@pytest.mark.parametrize("text", ["8090", ":", ":http", ":65536", "::1:80", "[host]:80", ":²"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"8090|brackets"):
        parse_address(text)


def test_the_page_for_users_has_every_figure() -> None:
    own = ("| `moorage_driver_", "| `akri_")
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(own)]

    assert {row.split(" | ")[0]: row for row in rows if row.count("|") == 6} == {
        f"| `{name}`": f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels)}"
        f" | {command(row)} | {meaning} |"
        for name, (kind, labels, meaning) in declared().items()
        for row in rows
        if row.startswith(f"| `{name}` ")
    }
    assert len(declared()) == sum(row.count("|") == 6 for row in rows)


def command(row: str) -> str:
    """Which command tells it, which nobody but the page says."""
    said = row.split(" | ")[3]
    assert said in ("both", "node", "shared")
    return said
