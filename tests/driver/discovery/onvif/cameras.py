"""Cameras, each a process in a network namespace of its own.

    unshare --net python -m tests.driver.discovery.onvif.cameras KIND ADDRESS [USER PASSWORD]

It waits for a line before it serves, so that the network interface `eth` can be handed to it.
"""

from __future__ import annotations

import http.server
import os
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

IPV6_UUID = "6e8b7c9a-0000-4000-8000-00000000cafe"
PORT = 8080

PROBE_MATCH = """<?xml version="1.0"?>
<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"
 xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing"
 xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery">
<e:Header><a:RelatesTo>{relates_to}</a:RelatesTo></e:Header><e:Body><d:ProbeMatches><d:ProbeMatch>
 <a:EndpointReference><a:Address>urn:uuid:{uuid}</a:Address></a:EndpointReference>
 <d:Scopes>{scopes}</d:Scopes><d:XAddrs>{urls}</d:XAddrs>
</d:ProbeMatch></d:ProbeMatches></e:Body></e:Envelope>"""


def serve_anothers(address: str, user: str, password: str) -> None:
    """The virtual camera of the project ipycam; it would make pictures with OpenCV.

    It chooses another UUID with each start, unless it is told one.
    """
    sys.modules["cv2"] = ModuleType("cv2")
    from ipycam.config import CameraConfig
    from ipycam.discovery import WSDiscoveryServer
    from ipycam.http import IPCameraHTTPHandler
    from ipycam.onvif import ONVIFService

    config = CameraConfig(
        name="Hall 3", local_ip=address, onvif_port=PORT, username=user, password=password
    )
    service = ONVIFService(config)
    if uuid := os.environ.get("CAMERA_UUID"):
        service.device_uuid = f"urn:uuid:{uuid}"
    WSDiscoveryServer(service).start()
    camera = SimpleNamespace(onvif=service, config=config)
    handler = type("Handler", (IPCameraHTTPHandler,), {"camera": camera})
    serve(socket.AF_INET, handler, service.device_uuid.removeprefix("urn:uuid:"))


class FakeCamera(http.server.BaseHTTPRequestHandler):
    """Answers every question with one answer that says nothing."""

    def do_POST(self) -> None:
        body = (
            b'<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"><e:Body>'
            b'<GetSystemDateAndTimeResponse xmlns="http://www.onvif.org/ver10/device/wsdl"/>'
            b"</e:Body></e:Envelope>"
        )
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def serve_fake(address: str, *_: str) -> None:
    """A camera that has but a link-local IPv6 address, between strangers who answer anything."""
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.bind(("", 3702))
    group = socket.inet_pton(socket.AF_INET6, "ff02::c")
    index = socket.if_nametoindex("eth")
    member = group + struct.pack("@I", index)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
    bomb = '<!DOCTYPE a [<!ENTITY b "boom">]><a>&b;</a>'

    def answers(question: str) -> Iterator[str | bytes]:
        yield from (b"\xff\x00", bomb, b"<a>" * 1000)
        yield PROBE_MATCH.format(
            uuid=IPV6_UUID.upper(),
            scopes="onvif://www.onvif.org/location/hall%203",
            urls=f"http://[{address}]:{PORT}/onvif",
            relates_to=question,
        )

    respond(sock, answers)
    serve(socket.AF_INET6, FakeCamera, IPV6_UUID)


def serve_forger(address: str, victim: str, urls: str) -> None:
    """Answers each probe with addresses of others, and as a camera that another is.

    Args:
        address: Its own.
        victim: The other's UUID.
        urls: Of others, with blanks between them.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("", 3702))
    member = socket.inet_aton("239.255.255.250") + socket.inet_aton(address)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    own = f"http://{address}:{PORT}/onvif"

    def answers(question: str) -> Iterator[str | bytes]:
        forged = PROBE_MATCH.format(uuid="{}", scopes="s", urls="{}", relates_to=question)
        yield forged.format("forged", urls)
        yield forged.format(victim, own)
        yield PROBE_MATCH.format(uuid="late", scopes="s", urls=own, relates_to=f"{question[:-1]}x")

    respond(sock, answers)
    serve(socket.AF_INET, FakeCamera, "forged")


def respond(sock: socket.socket, answers: Callable[[str], Iterable[str | bytes]]) -> None:
    """Answer probes in a thread: with what is made of the MessageID of each."""

    def serve_probes() -> None:
        while True:
            probe, peer = sock.recvfrom(65536)
            question = probe.decode().partition("MessageID>")[2].partition("<")[0]
            for message in answers(question):
                sock.sendto(message.encode() if isinstance(message, str) else message, peer)

    threading.Thread(target=serve_probes, daemon=True).start()


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def serve(
    family: socket.AddressFamily, handler: type[http.server.BaseHTTPRequestHandler], uuid: str
) -> None:
    kind = type("Server", (http.server.ThreadingHTTPServer,), {"address_family": family})
    server: http.server.HTTPServer = kind(("", PORT), handler)
    say(uuid)
    server.serve_forever()


class CameraProcess:
    """A camera at the other end of a network interface that is made for it.

    Args:
        kind: `anothers`, `fake` or `forger`.
        host: The address of this end, with its prefix length.
        address: Of the camera, in the same network.
        login: User and password, if it wants any; see `serve_forger`.
        beside: A command by which others are run where this end is; here, if empty.
    """

    def __init__(
        self, kind: str, host: str, address: str, *login: str, beside: Sequence[str] = ()
    ) -> None:
        module = ["-m", "tests.driver.discovery.onvif.cameras", kind, address]
        self.process = subprocess.Popen(
            ["unshare", "--net", sys.executable, *module, *login],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._beside = tuple(beside)
        self._here = f"cam{self.process.pid}"
        self._plug(self._here, host, f"{address}/{host.partition('/')[2]}")
        assert self.process.stdin
        assert self.process.stdout
        print(file=self.process.stdin, flush=True)
        assert select.select([self.process.stdout], [], [], 30)[0], "the camera does not come up"
        self.uuid = self.process.stdout.readline().strip()
        assert self.uuid, "the camera failed"

    def pull(self) -> None:
        """Pull its cable; the camera runs on."""
        ip("link", "set", self._here, "down", prefix=self._beside)

    def put_back(self) -> None:
        """Put its cable back."""
        ip("link", "set", self._here, "up", prefix=self._beside)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()

    def _plug(self, here: str, host: str, camera: str) -> None:
        assert self.process.stdout
        assert self.process.stdout.readline() == "namespace\n"
        pid = str(self.process.pid)
        peer = ("peer", "name", "eth", "netns", pid)
        ip("link", "add", here, "type", "veth", *peer, prefix=self._beside)
        inside = ("nsenter", "--net", "--target", pid)
        for prefix, name, address in ((self._beside, here, host), (inside, "eth", camera)):
            ip("link", "set", name, "addrgenmode", "none", prefix=prefix)
            nodad = ["nodad"] if ":" in address else []
            ip("address", "add", address, "dev", name, *nodad, prefix=prefix)
            ip("link", "set", name, "up", prefix=prefix)


def ip(*arguments: str, prefix: Sequence[str] = ()) -> None:
    subprocess.run([*prefix, "ip", *arguments], check=True)


if __name__ == "__main__":
    kind, address, *login = sys.argv[1:]
    say("namespace")
    sys.stdin.readline()
    user, password = login or ("", "")
    kinds: dict[str, Callable[[str, str, str], None]] = {
        "anothers": serve_anothers,
        "fake": serve_fake,
        "forger": serve_forger,
    }
    kinds[kind](address, user, password)
