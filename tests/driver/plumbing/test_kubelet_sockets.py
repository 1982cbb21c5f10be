"""Sockets in a folder that others may write: what is given to a group is the socket itself."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import grpc.aio
import pytest

from driver.plumbing.kubelet_sockets import Access, Socket, SocketError

GROUP = 65532


@pytest.fixture(name="victim")
def _victim(tmp_path: Path) -> Path:
    """What the group is not to have."""
    victim = tmp_path / "root"
    victim.mkdir(mode=0o700)
    return victim


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """What the group may write."""
    folder = tmp_path / "network"
    folder.mkdir()
    Access(GROUP if os.geteuid() == 0 else None).give(folder)
    return folder


def a_file(victim: Path) -> Path:
    path = victim / "claims.json"
    path.write_bytes(b"")
    path.chmod(0o600)
    return path


def a_folder(victim: Path) -> Path:
    return victim


def a_socket(victim: Path) -> Path:
    path = victim / "agent.sock"
    with closing(socket.socket(socket.AF_UNIX)) as agent:
        agent.bind(os.fspath(path))
    path.chmod(0o700)
    return path


def just_after_it_listens(put: Callable[[], None]) -> Callable[[grpc.aio.Server], None]:
    """Adds nothing to a server but somebody who is quick."""

    def add(server: grpc.aio.Server) -> None:
        start = server.start

        async def start_and_lose() -> None:
            await start()
            put()

        server.start = start_and_lose  # type: ignore[method-assign]

    return add


def access_of(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_gid, status.st_mode


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        (a_file, os.symlink),
        (a_folder, os.symlink),
        (a_socket, os.symlink),
        (a_file, os.link),
        (a_socket, os.link),
    ],
)
async def test_whoever_swaps_the_socket_for_a_link_has_nothing_given_to_him(
    kind: Callable[[Path], Path], link: Callable[[Path, Path], None], victim: Path, folder: Path
) -> None:
    target, hidden = kind(victim), folder / ".agent.sock"
    before = access_of(target)

    def put() -> None:
        hidden.unlink()
        link(target, hidden)

    access = Access(GROUP if os.geteuid() == 0 else None)
    one = Socket(folder / "agent.sock", just_after_it_listens(put), access=access)

    with pytest.raises(SocketError, match="to its group"):
        await one.open()

    assert access_of(target) == before
    assert not (folder / "agent.sock").exists()


def test_a_folder_is_given_itself_and_not_what_it_links_to(victim: Path, tmp_path: Path) -> None:
    before, link = access_of(victim), tmp_path / "link"
    link.symlink_to(victim)

    with pytest.raises(OSError, match="link"):
        Access().give(link)

    assert access_of(victim) == before


async def test_the_group_has_the_socket_that_is_the_servers(folder: Path) -> None:
    group = GROUP if os.geteuid() == 0 else os.getegid()
    one = Socket(folder / "agent.sock", lambda _: None, access=Access(group))
    await one.open()
    status = one.path.stat()
    await one.close(0)

    assert (status.st_gid, status.st_mode & 0o7777) == (group, 0o770)
