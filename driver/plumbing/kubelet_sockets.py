"""The sockets at which the kubelet calls this driver.

A server opens its socket with a hidden name, and then renames it. The kubelet watches the folder:
so it sees a socket only when the server answers. A server that stops removes the hidden name, which
no longer exists; so it never removes the socket of its successor.
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
"""Characters of a pod's UID in names of sockets: random digits, so they differ between pods."""

_GROUP_SOCKET = 0o770
_GROUP_FOLDER = 0o2770
"""With setgid: sockets in the folder belong to its group."""

LARGEST_MESSAGE_BYTES = 1 << 20
"""Some thousand claims; the kubelet sends the claims of one pod."""


class SocketError(Exception):
    """Raised when a socket cannot be opened at its path."""


@dataclass(frozen=True, slots=True)
class KubeletPaths:
    """Paths that the kubelet and the driver share.

    Attributes:
        root: The kubelet's `--root-dir`, as the kubelet itself sees it.
        pod_uid: Distinguishes the sockets of an old and a new pod during an update; may be "".
    """

    root: Path
    pod_uid: str = ""

    @property
    def data(self) -> Path:
        """The driver's own folder."""
        return self.root / "plugins" / DRIVER_NAME

    @property
    def lock(self) -> Path:
        """The lock file that an old and a new process share."""
        return self.data / "serialize.lock"

    @property
    def metadata(self) -> Path:
        """The folder of device metadata, which containers can read."""
        return self.data / "dra-device-metadata"

    @property
    def path(self) -> Path:
        """The file that says by which path devices are offered."""
        return self.data / "path"

    @property
    def dra_socket(self) -> Path:
        """The socket at which the kubelet prepares claims."""
        return self.data / f"dra{self._suffix}.sock"

    @property
    def registration_socket(self) -> Path:
        """The socket in the folder that the kubelet watches."""
        return self.root / "plugins_registry" / f"{DRIVER_NAME}{self._suffix}-reg.sock"

    @property
    def _suffix(self) -> str:
        """The start of the UID: all of it makes the path too long below folders of snaps."""
        return f"-{self.pod_uid[:UID_CHARACTERS]}" if self.pod_uid else ""


@dataclass(frozen=True, slots=True)
class Access:
    """The group whose members may connect to a socket, beside its owner.

    Attributes:
        group: The number of the group; None for that of the folder, or of the listening process.
    """

    group: int | None = None

    def give(self, path: Path) -> None:
        """Give the group access; an owner that is a member needs no capability for this.

        Members may write the folder, and replace the path with a link at any moment. So the file
        is opened once, and both the check and the change use the open file.

        Raises:
            OSError: If the file is not a folder or socket of this user.
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
    """The mode for the group; a socket with a second name may belong to another program."""
    is_own = status.st_uid == os.geteuid()
    if is_own and stat.S_ISDIR(status.st_mode):
        return _GROUP_FOLDER
    if is_own and stat.S_ISSOCK(status.st_mode) and status.st_nlink == 1:
        return _GROUP_SOCKET
    raise OSError(f"{path} is not a folder or socket of this user, or it is a link")


class Socket:
    """A gRPC server at a path, as long as the path leads to this server."""

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
                f"socket {self._hidden} has a path of {length} bytes, and at most {LONGEST_PATH}"
                " fit: the kubelet's root folder is too deep"
            )

    async def open(self) -> None:
        """Listen; replace a socket of a dead process. Raises SocketError."""
        server = grpc.aio.server(
            options=[("grpc.max_receive_message_length", self._largest_message_bytes)]
        )
        self._add_services(server)
        self._server = server
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            server.add_insecure_port(f"unix:{self._hidden}")
        except (OSError, RuntimeError) as error:
            raise SocketError(f"cannot listen at {self._hidden}: {error}") from error
        await server.start()
        try:
            if self._access is not None:
                self._access.give(self._hidden)
        except OSError as error:
            await self.close(grace_seconds=0)
            raise SocketError(f"cannot give {self._hidden} to its group: {error}") from error
        self._inode = _inode(self._hidden)
        self._hidden.replace(self.path)

    def is_lost(self) -> bool:
        """Whether the path is missing; False if another process replaced it, and serves there."""
        return _inode(self.path) is None

    def is_own(self) -> bool:
        """Whether the path leads to this server."""
        return self._inode is not None and _inode(self.path) == self._inode

    def withdraw(self) -> None:
        """Remove the path, unless another process has replaced it."""
        if self.is_own():
            with suppress(FileNotFoundError):
                self.path.unlink()

    async def close(self, grace_seconds: float) -> None:
        """Remove the path, wait up to `grace_seconds` for running calls, and stop."""
        self.withdraw()
        if self._server is not None:
            await self._server.stop(grace_seconds)
            self._server = None

    async def open_again(self) -> None:
        """Serve anew at the same path; running calls have 1 s to end."""
        await self.close(grace_seconds=1)
        await self.open()


def remove_dead_sockets(paths: KubeletPaths) -> None:
    """Remove sockets of killed processes of this driver, with the UIDs of their pods.

    The kubelet would keep trying to reach them. A socket at which a server listens stays.
    """
    for folder, pattern in (
        (paths.registration_socket.parent, f"{DRIVER_NAME}*-reg.sock"),
        (paths.data, "dra*.sock"),
        (paths.data, "ready*.sock"),
    ):
        for path in folder.glob(pattern):
            if path.is_socket() and is_dead(path):
                logger.warning("Removing socket %s: no server listens there", path)
                path.unlink(missing_ok=True)


def is_dead(path: Path) -> bool:
    """Whether the path is a socket at which no server listens."""
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
"""Identifies a socket at a path; the inode alone is soon reused."""


def socket_run(path: Path) -> SocketRun | None:
    """The socket that is at a path now; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns


async def finish(running: Collection[asyncio.Future[Any]], seconds: float) -> None:
    """Wait up to `seconds` for running tasks; then cancel them."""
    if not running:
        return
    _, unfinished = await asyncio.wait(running, timeout=seconds)
    for task in unfinished:
        task.cancel()
    await asyncio.gather(*unfinished, return_exceptions=True)
