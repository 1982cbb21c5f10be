"""`kubectl proxy` as a child process, on a socket that only its user may connect to.

The child never outlives the command. A shell beside it ends it and removes the socket as soon as
the command has ended, also by SIGKILL, unless the command has cleaned up and says so. The `kubectl`
on PATH may be a script that starts the real one: the process that listens is ended, too.
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
"""The longest time until kubectl listens: a disk may be slow, a network disk more so."""

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
output is one end of a socket pair, to which kubectl writes. The shell reads from it the PID of the
process that listens, if it is another one, and `well`. End of file means that the command has
ended. Without that PID the shell ends the children of a script."""

_FLAGS = (
    "--append-server-path",
    "--reject-methods=^(POST|PUT|PATCH|DELETE)$",
    # Instead of the default, which also refuses pods in a namespace named `pods`.
    "--reject-paths=^/api/v1/namespaces/[^/]+/(pods|services)/[^/]+/.+,^/api/v1/nodes/[^/]+/.+",
)

_LOG_LINE = re.compile(rb"^[IWEF][0-9]{4} .*\n?", re.MULTILINE)
"""Log lines of kubectl itself; other output comes from credential plugins, for the user."""


class KubectlProxy:
    """A running kubectl.

    Attributes:
        has_told_user: Whether a credential plugin wrote something to the user.
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
        self.has_prompted_user = False

    def listens(self) -> bool:
        """Wait until kubectl listens; False if it ended, or takes longer than `LISTEN_SECONDS`."""
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
        """The PID of the kubectl that the child started; 0 if the child is kubectl itself."""
        with self.connection() as connection:
            listener = listener_of(connection)
        return 0 if listener == self._process.pid else listener

    def _end_other_listener(self) -> None:
        with contextlib.suppress(OSError):
            if listener := self._other_listener():
                os.kill(listener, signal.SIGTERM)

    def connection(self) -> socket.socket:
        """A new connection; raises OSError."""
        found = socket.socket(socket.AF_UNIX)
        try:
            found.connect(self._path)
        except OSError:
            found.close()
            raise
        return found

    def received(self, connection: socket.socket, until: float) -> bytes:
        """The next bytes, b"" at the end; meanwhile output of plugins is shown to the user.

        Raises:
            TimeoutError: Nothing arrives before `until`, a time of the monotonic clock.
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
        shown = _LOG_LINE.sub(b"", text)
        self.has_prompted_user = self.has_prompted_user or bool(shown)
        sys.stderr.write(shown.decode(errors="replace"))
        sys.stderr.flush()

    def close(self) -> None:
        """End kubectl, and remove its socket and folder."""
        self._end_other_listener()
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._end_other_listener()  # It may only now listen; later its folder is missing.
        shutil.rmtree(self._folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # The shell beside it may have ended, too.
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
    """Start kubectl without waiting; None if there is no program, kubeconfig or context."""
    found = _started(choice)
    try:
        yield found
    finally:
        if found:
            found.close()
