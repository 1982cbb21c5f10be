r"""Stories of the network handlers; each has network namespaces of its own. See `test_networks`.

unshare --net python -m tests.driver.discovery.in_networks STORY "$(readlink /proc/self/ns/net)"
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from contextlib import aclosing
from datetime import timedelta
from typing import Any

from driver.devices import Device
from driver.discovery import handler_cycles
from driver.discovery.contract import DiscoveryHandler
from driver.discovery.handlers import Handlers, HandlerSettings, parse_details
from driver.discovery.onvif.details import OnvifDetails
from tests.driver.discovery.onvif.cameras import IPV6_UUID, PORT, CameraProcess, ip
from tests.driver.discovery.opcua.machines import Machines

SOON = timedelta(milliseconds=50)


async def cameras() -> None:
    """Cameras are found over every interface, by IPv4 and IPv6, with and without a password."""
    processes = [
        CameraProcess("anothers", "10.1.0.1/24", "10.1.0.2"),
        CameraProcess("anothers", "10.2.0.1/24", "10.2.0.2", "root", "päss"),
        CameraProcess("fake", "fe80::1/64", "fe80::2"),
    ]
    urls = [f"http://{host}:{PORT}/onvif" for host in ("10.1.0.2", "10.2.0.2", "[fe80::2]")]
    handler = Handlers(HandlerSettings(rediscovery_interval=SOON)).named("onvif")
    # These cameras do not wait before they answer.
    details = OnvifDetails(timeout_seconds=0.25, default_to_anyone=True)
    patient = OnvifDetails(timeout_seconds=1.0)
    login = {"username_default": b"root", "password_default": "päss".encode()}
    try:
        async with asyncio.timeout(60), aclosing(handler.discover(details, login)) as answers:
            async for found in answers:
                if len(found) == 3:
                    break
            _check(found, urls, [processes[0].uuid, processes[1].uuid, IPV6_UUID])
            assert handler.problem == "Some answers to the probe are invalid."
            processes[0].stop()
            assert (await anext(answers))[0].id == found[1].id
        async with asyncio.timeout(60), aclosing(handler.discover(patient)) as answers:
            assert [one.id for one in await anext(answers)] == [found[2].id]
            assert "10.2.0.2" in (handler.problem or "")
            assert "HTTP status 401" in (handler.problem or "")
    finally:
        for process in processes:
            process.stop()


def _check(found: tuple[Device, ...], urls: list[str], uuids: list[str]) -> None:
    for one, url, uuid in zip(found, urls, uuids, strict=True):
        assert one.properties["ONVIF_DEVICE_UUID"] == uuid
        assert one.properties["ONVIF_DEVICE_SERVICE_URL"].startswith(url)
        assert one.id == f"{one.properties['ONVIF_DEVICE_SERVICE_URL']}-{uuid}"
    makers = [one.properties.get("ONVIF_DEVICE_MANUFACTURER") for one in found]
    assert makers == ["PythonCam", "PythonCam", None]
    assert found[2].properties["ONVIF_DEVICE_LOCATION"] == "hall 3"


HOSTS = ("127.0.0.1", "[::1]", "10.1.0.1", "10.2.0.1", "10.1.0.9", "169.254.169.254")
"""Of this machine, of others, and of clouds, each in a URL of a stranger's."""


async def forgeries() -> None:
    """What a stranger tells of others is not asked, and the camera that was there first stays."""
    ip("link", "set", "lo", "up")
    handler_cycles.MOST_REASONS = 99
    camera = CameraProcess("anothers", "10.1.0.1/24", "10.1.0.9")
    try:
        with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as mine:
            mine.setblocking(False)
            await _a_stranger_comes(camera, mine.getsockname()[1])
            _check_unasked(mine)
    finally:
        camera.stop()


async def _a_stranger_comes(camera: CameraProcess, port: int) -> None:
    """He tells of a port of this machine, by several names, and says that he is the camera."""
    handler = Handlers(HandlerSettings(rediscovery_interval=SOON)).named("onvif")
    details = OnvifDetails(timeout_seconds=0.25, by_uuid=True)
    urls = [f"http://{host}:{port}/" for host in HOSTS]
    names = [f"http://2130706433:{port}/", "http://localhost:1/"]
    forged = " ".join([*urls, "http://127.0.0.1:1/", *names])
    told = [f'"{url}", reported by 10.2.0.2, is not contacted: its address is ' for url in urls]
    told += [f'"{url}": its address is ' for url in names]
    told += [f'10.2.0.2 answers with the UUID "{camera.uuid}" of the camera at 10.1.0.9, ']
    told += ["Some answers belong to no probe of this cycle."]
    async with asyncio.timeout(60), aclosing(handler.discover(details)) as answers:
        (found,) = await anext(answers)
        stranger = CameraProcess("forger", "10.2.0.1/24", "10.2.0.2", camera.uuid, forged)
        try:
            waiting = asyncio.ensure_future(anext(answers))
            problem = await _problem_with(handler, told)
            assert not re.search("refused|HTTP status", problem), problem
            assert not waiting.done(), "it is the camera that it was"
            camera.stop()
            (other,) = await waiting
        finally:
            stranger.stop()
    assert other.id == found.id
    assert other.properties["ONVIF_DEVICE_SERVICE_URL"].startswith("http://10.2.0.2:")


async def _problem_with(handler: DiscoveryHandler[Any], told: list[str]) -> str:
    """What the handler tells, as soon as all of these are in it."""
    while not all(one in (handler.problem or "") for one in told):  # noqa: ASYNC110 - else untold
        await asyncio.sleep(0.01)
    return handler.problem or ""


def _check_unasked(server: socket.socket) -> None:
    try:
        _, peer = server.accept()
    except BlockingIOError:
        return
    raise AssertionError(f"this machine was asked for a stranger, from {peer}")


async def machines() -> None:
    """Servers are found where a Discovery Server says, and where they are asked themselves."""
    ip("link", "set", "lo", "up")
    text = """
    opcuaDiscoveryMethod:
      standard:
        discoveryUrls: ["opc.tcp://127.0.0.1:4840/", "opc.tcp://127.0.0.1:4861/",
                        "opc.tcp://127.0.0.1:4862/", "opc.tcp://127.0.0.1:1/"]
    applicationNames: {items: ["Press 9"], action: Exclude}
    """
    handler = Handlers(HandlerSettings(rediscovery_interval=SOON)).named("opcua")
    with Machines() as servers:
        details = parse_details("opcua", text)
        async with asyncio.timeout(60), aclosing(handler.discover(details)) as answers:
            found = await anext(answers)
            while len(found) != 2:
                found = await anext(answers)
            assert [_port_and_name(one) for one in found] == [
                ("4861", "Press 8"),
                ("4855", "Press 7"),
            ]
            assert '"opc.tcp://127.0.0.1:1/": connection refused.' in (handler.problem or "")
            assert "4862" in (handler.problem or "")
            servers.kill_press_7()
            assert [_port_and_name(one) for one in await anext(answers)] == [("4861", "Press 8")]


def _port_and_name(device: Device) -> tuple[str, str]:
    url = device.properties["OPCUA_DISCOVERY_URL"]
    assert url == device.id
    return url.rstrip("/").rpartition(":")[2], device.properties["OPCUA_APPLICATION_NAME"]


STORIES = {story.__name__: story for story in (cameras, forgeries, machines)}

if __name__ == "__main__":
    name, outside = sys.argv[1:]
    assert os.readlink("/proc/self/ns/net") != outside, "this needs a namespace of its own"
    asyncio.run(STORIES[name]())
