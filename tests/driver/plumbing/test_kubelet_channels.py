"""Every client of ours at a UNIX socket is taken by a server that looks at `:authority`."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from driver.device_plugin.kubelet.listings import list_devices
from driver.device_plugin.kubelet.registrations import KubeletSocket
from driver.discovery_api.v0 import discovery_pb2 as v0
from driver.handlers.registrations import HandlerState
from driver.handlers.sdk import Registrations
from driver.handlers.sdk_requests import Place
from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2 as v1beta1
from driver.kubelet_api.podresources.v1 import api_pb2 as podresources
from tests.driver.handler_nodes import ANode, answer, devices, register, running
from tests.fakes.strict_h2 import StrictServer

ROOT = Path(__file__).parent.parent.parent.parent


async def test_a_handler_on_a_strict_server_is_asked(tmp_path: Path) -> None:
    node, handler = ANode(tmp_path), StrictServer([answer(*devices("a"))], ends=False)
    path = tmp_path / "shelf.sock"
    async with running(node.run()), handler.at(path):
        await register(node.socket, str(path))
        await node.until(lambda: node.ids() == ["a"] or bool(handler.refused))
        assert handler.refused == []
        assert handler.paths == ["/v0.DiscoveryHandler/Discover"]
        await node.until_state(HandlerState.ACTIVE)


async def test_a_strict_agent_takes_the_registration_of_a_handler(tmp_path: Path) -> None:
    place, agent = Place(tmp_path), StrictServer([v0.Empty()], ends=True)
    request = v0.RegisterDiscoveryHandlerRequest(name="shelf", endpoint="/a.sock")
    async with agent.at(place.agent_socket):
        await Registrations(place.agent_socket, request).look(anew=True)
    assert (agent.paths, agent.refused) == (["/v0.Registration/RegisterDiscoveryHandler"], [])


async def test_a_strict_kubelet_takes_registrations_and_lists_its_pods(tmp_path: Path) -> None:
    registering = StrictServer([v1beta1.Empty()], ends=True)
    listing = StrictServer([podresources.ListPodResourcesResponse()], ends=True)
    async with registering.at(tmp_path / "registering.sock"), listing.at(tmp_path / "kubelet.sock"):
        await KubeletSocket(tmp_path / "registering.sock").register("akri.sh/a", "a.sock", 10)
        asked = await list_devices(tmp_path, asyncio.get_running_loop().time)
    assert asked is not None
    assert registering.refused == listing.refused == []


def test_no_other_module_makes_channels_to_sockets() -> None:
    made = re.compile(r"insecure_channel\(\s*f?[\"']unix:")
    sources = [p for p in (ROOT / "driver").rglob("*.py") if p.name != "kubelet_channels.py"]
    assert [path.name for path in sources if made.search(path.read_text())] == []
