"""The sockets on which the kubelet finds this driver.

A server listens under a hidden name, which then is renamed: the kubelet, which watches the folder,
sees a socket only when somebody answers there. And a server that stops removes the name it
listened under, which by then is nobody's; so it never removes the socket of its successor.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import stat
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio

from driver.api import DRIVER_NAME

logger = logging.getLogger(__name__)

LONGEST_PATH = 107
"""Bytes of a UNIX socket's path, without the final NUL (`sockaddr_un.sun_path`)."""

UID_CHARACTERS = 8
"""Of a pod's UID, in names of sockets: random digits, so two pods of a node have others."""

_GROUP_SOCKET = 0o770
_GROUP_FOLDER = 0o2770
"""Sockets in it belong to its group."""

LARGEST_MESSAGE_BYTES = 1 << 20
"""Some thousand claims; the kubelet sends those of one pod."""


class SocketError(Exception):
    """Raised when a socket cannot be opened where the kubelet would look for it."""


@dataclass(frozen=True, slots=True)
class KubeletPaths:
    """Where kubelet and driver meet.

    Attributes:
        root: The kubelet's `--root-dir`, by the path under which the kubelet itself has it.
        pod_uid: Keeps the sockets of an old and a new pod apart while they overlap; may be empty.
    """

    root: Path
    pod_uid: str = ""

    @property
    def data(self) -> Path:
        """The driver's own folder."""
        return self.root / "plugins" / DRIVER_NAME

    @property
    def lock(self) -> Path:
        """What an old and a new process share."""
        return self.data / "serialize.lock"

    @property
    def metadata(self) -> Path:
        """What containers can read of their devices."""
        return self.data / "dra-device-metadata"

    @property
    def path(self) -> Path:
        """What says by which path devices are offered."""
        return self.data / "path"

    @property
    def dra_socket(self) -> Path:
        """Where claims are prepared."""
        return self.data / f"dra{self._suffix}.sock"

    @property
    def registration_socket(self) -> Path:
        """In the folder that the kubelet watches."""
        return self.root / "plugins_registry" / f"{DRIVER_NAME}{self._suffix}-reg.sock"

    @property
    def _suffix(self) -> str:
        """The beginning of the UID: all of it has no room below folders such as those of snaps."""
        return f"-{self.pod_uid[:UID_CHARACTERS]}" if self.pod_uid else ""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may connect to a socket beside its owner: the members of a group.

    Attributes:
        group: Its number; None for that of the folder, or of whoever listens.
    """

    group: int | None = None

    def give(self, path: Path) -> None:
        """Let them; the owner needs no capability if he is a member himself.

        The members may write the folder, and put a link there at any moment. So what is looked at
        is held, and is what is changed, whatever the path means by then.

        Raises:
            OSError: If what is there is no folder or socket of this user's own.
        """
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            mode = _group_mode(os.fstat(descriptor), path)
            itself = f"/proc/self/fd/{descriptor}"
            if self.group is not None:
                os.chown(itself, -1, self.group)
            os.chmod(itself, mode)
        finally:
            os.close(descriptor)


def _group_mode(status: os.stat_result, path: Path) -> int:
    """What its group may do with it; a socket that has a second name may be one of others."""
    is_own = status.st_uid == os.geteuid()
    if is_own and stat.S_ISDIR(status.st_mode):
        return _GROUP_FOLDER
    if is_own and stat.S_ISSOCK(status.st_mode) and status.st_nlink == 1:
        return _GROUP_SOCKET
    raise OSError(f"{path} is a link, or no folder or socket of this user's own")


class Socket:
    """A gRPC server at a path, for as long as the path is its own."""

    def __init__(
        self,
        path: Path,
        add_services: Callable[[grpc.aio.Server], None],
        largest_message_bytes: int = LARGEST_MESSAGE_BYTES,
        access: Access | None = None,
    ) -> None:
        self.path = path
        self._access = access
        self._largest_message_bytes = largest_message_bytes
        self._hidden = path.with_name(f".{path.name}")
        self._add_services = add_services
        self._server: grpc.aio.Server | None = None
        self._inode: tuple[int, int] | None = None
        if (length := len(os.fsencode(self._hidden))) > LONGEST_PATH:
            raise SocketError(
                f"socket {self._hidden} has a path of {length} bytes, and {LONGEST_PATH} fit:"
                " the kubelet's root folder is too deep"
            )

    async def open(self) -> None:
        """Listen; a socket that a dead process left is replaced."""
        server = grpc.aio.server(
            options=[("grpc.max_receive_message_length", self._largest_message_bytes)]
        )
        self._add_services(server)
        self._server = server
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            server.add_insecure_port(f"unix:{self._hidden}")
        except (OSError, RuntimeError) as error:
            raise SocketError(f"nobody can listen at {self._hidden}: {error}") from error
        await server.start()
        try:
            if self._access is not None:
                self._access.give(self._hidden)
        except OSError as error:
            await self.close(grace_seconds=0)
            raise SocketError(f"{self._hidden} cannot be given to others: {error}") from error
        self._inode = _inode(self._hidden)
        self._hidden.replace(self.path)

    def is_lost(self) -> bool:
        """Whether the path is gone. One that another process made is not: that one serves now."""
        return _inode(self.path) is None

    def is_own(self) -> bool:
        """Whether who comes to the path comes to this server."""
        return self._inode is not None and _inode(self.path) == self._inode

    def withdraw(self) -> None:
        """Remove the path, unless another process has replaced it."""
        if self.is_own():
            with suppress(FileNotFoundError):
                self.path.unlink()

    async def close(self, grace_seconds: float) -> None:
        """Withdraw, let calls come to an end for this long, and stop."""
        self.withdraw()
        if self._server is not None:
            await self._server.stop(grace_seconds)
            self._server = None

    async def open_again(self) -> None:
        """Serve anew at the same path; calls that still run on the old connection may end."""
        await self.close(grace_seconds=1)
        await self.open()


def remove_dead_sockets(paths: KubeletPaths) -> None:
    """Remove what killed processes of this driver left, under the UIDs of their pods.

    The kubelet would go on trying to reach them. One that somebody listens at stays.
    """
    for folder, pattern in (
        (paths.registration_socket.parent, f"{DRIVER_NAME}*-reg.sock"),
        (paths.data, "dra*.sock"),
        (paths.data, "ready*.sock"),
    ):
        for path in folder.glob(pattern):
            if path.is_socket() and is_dead(path):
                logger.warning("Removing socket %s: nobody listens there", path)
                path.unlink(missing_ok=True)


def is_dead(path: Path) -> bool:
    """Whether a socket is there at which nobody listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as caller:
        try:
            caller.connect(os.fspath(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


SocketRun = tuple[int, int, int]
"""What tells one socket at a path from the next; the inode alone is soon used again."""


def socket_run(path: Path) -> SocketRun | None:
    """Which socket is at a path now; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns


async def finish(running: Collection[asyncio.Future[Any]], seconds: float) -> None:
    """Let what runs come to an end, for this long; then it is cancelled."""
    if not running:
        return
    _, unfinished = await asyncio.wait(running, timeout=seconds)
    for task in unfinished:
        task.cancel()
    await asyncio.gather(*unfinished, return_exceptions=True)
