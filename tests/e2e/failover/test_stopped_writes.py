"""A process that is stopped after it was told that it may write, and before it has written.

No cluster: an API server that is as slow as the test wants, and the plugin's own client.
"""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from local_cluster.authority import Authority
from local_cluster.certificates import CertificateSpec
from local_cluster.configurations import kubeconfig

ROOT = Path(__file__).parents[3]
HOST = "127.0.0.1"
SECONDS = 1.0
WAIT_SECONDS = 30.0


class SlowServer:
    """An API server that accepts a connection, and answers its greeting when the test wants."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._listening = socket.create_server((HOST, 0))
        self._opened = ExitStack()
        self._opened.callback(self._listening.close)
        self._listening.settimeout(WAIT_SECONDS)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self._listening.getsockname()[1]}"

    def accept(self) -> None:
        """A client that has sent its greeting."""
        self._connection, _ = self._listening.accept()
        self._opened.callback(self._connection.close)
        self._connection.settimeout(WAIT_SECONDS)
        self._connection.recv(1, socket.MSG_PEEK)

    def greet(self) -> None:
        """Read the client's greeting and answer it: the connection could be used after that."""
        self._incoming.write(self._connection.recv(2**16))
        assert not self._shake_hands()

    def heard(self, until: bytes = b"never") -> bytes:
        """What the client sends until these words, or until it closes the connection."""
        found = b""
        while until not in found and (received := self._receive()):
            self._incoming.write(received)
            found += self._read() if self._shake_hands() else b""
        return found

    def close(self) -> None:
        self._opened.close()

    def _receive(self) -> bytes:
        try:
            return self._connection.recv(2**16)
        except ConnectionError:
            return b""

    def _shake_hands(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        finally:
            self._connection.sendall(self._outgoing.read())
        return True

    def _read(self) -> bytes:
        try:
            return self._tls.read()
        except ssl.SSLWantReadError:
            return b""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "pki")


@pytest.fixture
def server(authority: Authority, tmp_path: Path) -> Iterator[SlowServer]:
    spec = CertificateSpec("server", "server", hosts=(HOST,))
    certificate, key = authority.issue(spec, tmp_path / "issued")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    found = SlowServer(context)
    yield found
    found.close()


@pytest.fixture
def credentials(server: SlowServer, authority: Authority, tmp_path: Path) -> Path:
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig(server.url, authority.certificate_file, {"token": "none"}))
    return file


@contextmanager
def writing(credentials: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    module = (sys.executable, "-m", "tests.e2e.failover.stopped_writer")
    command = (*module, str(credentials), str(seconds))
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def stop(process: subprocess.Popen[str]) -> None:
    """And wait until it stands still."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)


def test_a_write_whose_connection_came_while_its_process_was_stopped_is_not_sent(
    server: SlowServer, credentials: Path
) -> None:
    with writing(credentials, SECONDS) as writer:
        server.accept()
        stop(writer)
        server.greet()
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(SECONDS)  # Its time is over; it does not know.

        writer.send_signal(signal.SIGCONT)

        assert b"POST" not in server.heard()
        told, _ = writer.communicate(timeout=WAIT_SECONDS)
    assert "Timeout" in told


def test_the_same_write_is_sent_when_its_process_wakes_up_in_time(
    server: SlowServer, credentials: Path
) -> None:
    """So the other test would see it."""
    with writing(credentials, WAIT_SECONDS) as writer:
        server.accept()
        stop(writer)
        server.greet()

        writer.send_signal(signal.SIGCONT)

        assert b"POST /api/v1/namespaces/default/pods/pod/binding" in server.heard(until=b"\r\n")


@pytest.mark.parametrize("loop", ["uvloop.new_event_loop", "None"])
def test_the_clock_goes_on_while_a_process_is_stopped(loop: str) -> None:
    """Within one step of its loop, too: that is where the answer "you may write" is used."""
    code = f"""
import asyncio, os, signal, uvloop
async def stop():
    clock = asyncio.get_running_loop().time
    before = clock()
    print("stops", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    print(clock() - before)
asyncio.Runner(loop_factory={loop}).run(stop())
"""
    command = (sys.executable, "-c", code)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stops\n"
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)  # Longer than what is asserted: uvloop's clock counts milliseconds.
        process.send_signal(signal.SIGCONT)

        assert float(process.stdout.read()) >= 0.2
