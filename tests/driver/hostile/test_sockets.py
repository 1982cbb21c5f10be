"""Anything may come in at the sockets of a driver: it answers, stays, and does not grow."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import grpc
import hypothesis
import pytest
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.process_figures import resident_mib
from driver.discovery_api.v0 import discovery_pb2
from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2 as device_plugin
from driver.kubelet_api.dra.v1 import api_pb2 as dra
from driver.kubelet_api.pluginregistration.v1 import api_pb2 as registration
from driver.plumbing.kubelet_sockets import KubeletPaths
from tests.contracts import DRA_V1BETA1, contract
from tests.driver.crashes.claims_process import serve_claims
from tests.driver.crashes.lives import Serve, life, until
from tests.driver.crashes.slots_process import serve_slots
from tests.driver.hostile.handlers_process import SOCKET, serve_handlers
from tests.driver.hostile.messages import payloads
from tests.fakes.device_manager import FakeDeviceManager
from tests.fakes.pod_resources import FakePodResources

SECONDS_VARIABLE = "MOORAGE_HOSTILE_SECONDS"
"""For each socket; without it, `EXAMPLES` messages."""

EXAMPLES = 60
ANSWER_SECONDS = 60.0
GROWN_MIB = 24.0

ANSWERS = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}
"""Not among them: UNKNOWN, by which gRPC tells that a method raised something."""

DRA = [file.services_by_name["DRAPlugin"] for file in (dra.DESCRIPTOR, contract(DRA_V1BETA1))]
REGISTRATION = [registration.DESCRIPTOR.services_by_name["Registration"]]
DEVICE_PLUGIN = [device_plugin.DESCRIPTOR.services_by_name["DevicePlugin"]]
DISCOVERY = [discovery_pb2.DESCRIPTOR.services_by_name["Registration"]]


@pytest.fixture
def root() -> Iterator[Path]:
    """In a folder with a short path: that of a socket has 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="h", dir="/tmp") as folder:
        (Path(folder) / "kubelet" / "plugins_registry").mkdir(parents=True)
        yield Path(folder)


@pytest.mark.parametrize("which", ["claims", "registration"])
async def test_nothing_harms_a_driver_of_claims(root: Path, which: str) -> None:
    paths = KubeletPaths(root / "kubelet")
    if which == "claims":
        await _besiege(serve_claims, root, paths.dra_socket.parent, DRA)
    else:
        await _besiege(serve_claims, root, paths.registration_socket.parent, REGISTRATION)


async def test_nothing_harms_a_driver_of_slots(root: Path) -> None:
    async with (
        FakeDeviceManager(root / "device-plugins") as kubelet,
        FakePodResources(root / "pod-resources"),
    ):
        await _besiege(serve_slots, root, kubelet.folder / "moorage", DEVICE_PLUGIN)


async def test_nothing_harms_the_socket_where_handlers_register(root: Path) -> None:
    await _besiege(serve_handlers, root, root / SOCKET, DISCOVERY)


async def _besiege(
    serve: Serve, root: Path, place: Path, services: list[ServiceDescriptor]
) -> None:
    """Say all sorts of things; `place` is a socket, or a folder of them."""
    async with life(serve, root) as driver:
        driver.begin()
        await asyncio.to_thread(until, lambda: bool(_sockets(place)))
        pid = driver.process.pid
        assert pid is not None
        socket = _sockets(place)[0]
        await asyncio.to_thread(_say, socket, services, 1)
        before = resident_mib(pid)
        await asyncio.to_thread(_say_all, socket, services)
        assert driver.process.is_alive()
        assert resident_mib(pid) - before < GROWN_MIB


def _sockets(place: Path) -> list[Path]:
    if place.is_dir():
        return [p for p in place.iterdir() if p.is_socket() and not p.name.startswith(".")]
    return [place] if place.is_socket() else []


def _say_all(socket: Path, services: list[ServiceDescriptor]) -> None:
    deadline = time.monotonic() + float(os.environ.get(SECONDS_VARIABLE, "0"))
    for seed in count(2):
        _say(socket, services, seed)
        if time.monotonic() > deadline:
            return


def _say(socket: Path, services: list[ServiceDescriptor], seed: int) -> None:
    methods = [m for service in services for m in service.methods if not m.server_streaming]
    calls = st.sampled_from(methods).flatmap(
        lambda method: st.tuples(st.just(method), payloads(method.input_type))
    )
    with grpc.insecure_channel(f"unix:{socket}") as channel:

        @hypothesis.seed(seed)
        @settings(
            max_examples=EXAMPLES,
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
        @given(calls)
        def said(call: tuple[MethodDescriptor, bytes]) -> None:
            method, payload = call
            code, details = _answer(channel, method, payload)
            assert code in ANSWERS or _is_no_message(code, details), details

        said()


def _answer(
    channel: grpc.Channel, method: MethodDescriptor, payload: bytes
) -> tuple[grpc.StatusCode, str]:
    path = f"/{method.containing_service.full_name}/{method.name}"
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
    outcome = call.future(payload, timeout=ANSWER_SECONDS)
    return outcome.code(), outcome.details() or ""


def _is_no_message(code: grpc.StatusCode, details: str) -> bool:
    """What gRPC itself answers to bytes that are no message."""
    return code is grpc.StatusCode.UNKNOWN and "DecodeError" in details
