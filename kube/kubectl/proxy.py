"""`kubectl proxy` as a child, on a socket that its user alone may connect to.

It never outlives the command. A shell beside it, which the command tells when all is well, ends it
and removes the socket as soon as the command is gone, be it by SIGKILL. The `kubectl` on PATH may
be a script that starts the real one: the process that listens is ended, too.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kube.kubectl.kubeconfig import Choice, has_context
from kube.kubectl.socket_peers import listener_of

LISTEN_SECONDS = 10.0
"""How long kubectl may take until it listens: a disk may be slow, a network disk more so."""

END_SECONDS = 2.0
_LOOK_SECONDS = 0.01
_READ_BYTES = 2**16

_WATCHED = """
( trap '' HUP TERM
  listener=
  while read -r word; do [ "$word" != well ] || exit 0; listener=$word; done
  kill $listener $(ps -A -o ppid= -o pid= | sed -n "s/^ *$$  *//p") "$$"
  rm -f "$1/socket"; rmdir "$1"
) <&1 >/dev/null 2>&1 &
shift
exec "$@"
"""
"""Becomes kubectl, in the foreground, so that credential plugins may ask on the terminal. Its
output is one end of a socket pair: what is written there is kubectl's. What can be read there is
the PID of the process that listens, where it is another, and `well`; its end is that of the
command. Before that PID is told, the children of a script are what can be found."""

_FLAGS = (
    "--append-server-path",
    "--reject-methods=^(POST|PUT|PATCH|DELETE)$",
    # In place of the default, which refuses pods in a namespace of the name `pods`, too.
    "--reject-paths=^/api/v1/namespaces/[^/]+/(pods|services)/[^/]+/.+,^/api/v1/nodes/[^/]+/.+",
)

_LOG_LINE = re.compile(rb"^[IWEF][0-9]{4} .*\n?", re.MULTILINE)
"""What kubectl logs of itself; all else comes from credential plugins, and is for the user."""


class KubectlProxy:
    """A running kubectl.

    Attributes:
        has_told_user: Whether a credential plugin wrote something, which the user was shown.
    """

    def __init__(self, program: str, choice: Choice, folder: Path) -> None:
        self._folder = folder
        self._path = str(folder / "socket")
        self._pair, theirs = socket.socketpair()
        kubectl = (program, *choice.flags, "proxy", f"--unix-socket={self._path}", *_FLAGS)
        with theirs:
            self._process = subprocess.Popen(
                ("/bin/sh", "-c", _WATCHED, "sh", str(folder), *kubectl),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
            )
        assert self._process.stderr
        self._errors = self._process.stderr.fileno()
        self._has_errors = True
        self.has_told_user = False

    def listens(self) -> bool:
        """Wait until it does; False where kubectl ended, or takes too long."""
        until = time.monotonic() + LISTEN_SECONDS
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                if listener := self._other_listener():
                    self._pair.sendall(b"%d\n" % listener)
                return True
            if self._process.poll() is not None:
                return False
            time.sleep(_LOOK_SECONDS)
        return False

    def _other_listener(self) -> int:
        """The PID of the kubectl that our child started; 0 where our child is kubectl itself."""
        with self.connection() as connection:
            listener = listener_of(connection)
        return 0 if listener == self._process.pid else listener

    def _end_other_listener(self) -> None:
        with contextlib.suppress(OSError):
            if listener := self._other_listener():
                os.kill(listener, signal.SIGTERM)

    def connection(self) -> socket.socket:
        """A new connection. Raises OSError where there is none."""
        found = socket.socket(socket.AF_UNIX)
        try:
            found.connect(self._path)
        except OSError:
            found.close()
            raise
        return found

    def received(self, connection: socket.socket, until: float) -> bytes:
        """What comes next, b"" at the end; what plugins tell the user meanwhile is shown.

        Raises:
            TimeoutError: If nothing comes until then, on the monotonic clock.
        """
        answers = connection.fileno()
        while (left := until - time.monotonic()) > 0:
            waited = [answers, self._errors] if self._has_errors else [answers]
            readable, _, _ = select.select(waited, [], [], left)
            if self._errors in readable:
                self._show()
            if answers in readable:
                return connection.recv(_READ_BYTES)
        raise TimeoutError("no answer in time")

    def _show(self) -> None:
        text = os.read(self._errors, _READ_BYTES)
        self._has_errors = bool(text)
        told = _LOG_LINE.sub(b"", text)
        self.has_told_user = self.has_told_user or bool(told)
        sys.stderr.write(told.decode(errors="replace"))
        sys.stderr.flush()

    def close(self) -> None:
        """End it, and leave nothing behind."""
        self._end_other_listener()
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._end_other_listener()  # It may just have begun to listen; later it finds no folder.
        shutil.rmtree(self._folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # The shell beside it is gone, too.
            self._pair.sendall(b"well\n")
        self._pair.close()
        assert self._process.stderr
        self._process.stderr.close()


def _started(choice: Choice) -> KubectlProxy | None:
    program = shutil.which("kubectl")
    if program is None or not choice.has_files() or not has_context(choice):
        return None
    try:
        folder = Path(tempfile.mkdtemp(prefix="kubectl-moorage-"))
    except OSError:
        return None
    try:
        return KubectlProxy(program, choice, folder)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return None


@contextmanager
def started(choice: Choice) -> Iterator[KubectlProxy | None]:
    """Start kubectl and do not wait for it; None where it has no program, kubeconfig or context."""
    found = _started(choice)
    try:
        yield found
    finally:
        if found:
            found.close()
