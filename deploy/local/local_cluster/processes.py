"""Processes of the machine: started with a mark, recorded with their start time, signalled.

A pid alone is no identity: the kernel uses it again. Pid and start time together are, and
signals go through a pidfd that was opened before both were compared. So a recycled pid is
never signalled. The mark (an environment variable) finds what was started by an
orchestrator that died before it could write the record.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from local_cluster.errors import PartError
from local_cluster.files import read_json, write_json

MARK = "MOORAGE_LOCAL_CLUSTER"
POLL_SECONDS = 0.02
KILL_SECONDS = 30.0
STOP_SECONDS = 10.0
PROC = Path("/proc")
# Fingerprint of components, which belong to a cluster but to no plan: `up` leaves them alone.
COMPONENT = "component"

# Children of this very process must be reaped, or they stay zombies until it ends.
_children: set[int] = set()


@dataclass(frozen=True)
class Process:
    """One process for its whole life, whoever its parent is by now."""

    pid: int
    start_time: int
    """Clock ticks since boot, from /proc/<pid>/stat."""

    def is_alive(self) -> bool:
        _reap(self.pid)
        return _start_time(self.pid) == self.start_time

    def signal(self, number: signal.Signals) -> bool:
        """False when the process is gone; after SIGSTOP, all of its threads stand still."""
        with _pidfd(self.pid) as descriptor:
            if descriptor is None or not self.is_alive():
                return False
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)
                if number == signal.SIGSTOP:
                    self._wait_stopped()
                return True
        return False

    def _wait_stopped(self) -> None:
        """On a busy machine a thread goes on until the kernel has its turn to stop it."""
        deadline = time.monotonic() + STOP_SECONDS
        while _has_running_thread(self.pid) and time.monotonic() < deadline:
            time.sleep(0)

    def end(self, seconds: float) -> None:
        """SIGTERM, then SIGKILL. SIGCONT first, since a stopped process hears no SIGTERM."""
        end_all([self], seconds)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        kill_all([self])


def end_all(found: Iterable[Process], seconds: float) -> None:
    """End them side by side. SIGKILL reaches whatever SIGTERM did not."""
    remaining = tuple(found)
    for number in (signal.SIGCONT, signal.SIGTERM):
        for process in remaining:
            process.signal(number)
    kill_all(_wait_gone(remaining, seconds))


def kill_all(found: Iterable[Process]) -> None:
    """SIGKILL, and wait until all are gone."""
    remaining = tuple(found)
    for process in remaining:
        leader = session_leader(process)
        process.signal(signal.SIGKILL)
        # A stopped nsenter would not reap it, and its PID namespace could not end.
        leader.signal(signal.SIGCONT)
    if left := _wait_gone(remaining, KILL_SECONDS):
        pids = ", ".join(str(process.pid) for process in left)
        raise PartError(f"processes survive SIGKILL, so they hang inside the kernel: {pids}")


def _wait_gone(found: Iterable[Process], seconds: float) -> tuple[Process, ...]:
    """Those that are still there when time is up."""
    deadline = time.monotonic() + seconds
    remaining = tuple(process for process in found if process.is_alive())
    while remaining and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        remaining = tuple(process for process in remaining if process.is_alive())
    return remaining


def start(argv: Sequence[str], log: Path, env: Mapping[str, str], mark: str) -> Process:
    """Start in a session of its own, so that the terminal's Ctrl-C does not reach it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawnp(
        argv[0],
        list(argv),
        {**env, MARK: mark},
        file_actions=(
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ),
        setsid=True,
        # Python ignores these, and what is ignored stays so in what it starts.
        setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
    )
    _children.add(pid)
    return identify(pid)


def identify(pid: int) -> Process:
    """The process that has this pid now; a dead one gets a start time that matches none."""
    return Process(pid, _start_time(pid) or 0)


def session_leader(process: Process) -> Process:
    """What was started by `start` and became this process, or its parent by forking."""
    try:
        return identify(os.getsid(process.pid))
    except ProcessLookupError:
        return process


def only_child(parent: Process, seconds: float = 10) -> Process:
    """The one child of `parent`, once it has one: nsenter and unshare fork into a PID namespace."""
    deadline = time.monotonic() + seconds
    while parent.is_alive() and time.monotonic() < deadline:
        for pid in _all_pids():
            if _parent_of(pid) == parent.pid and (found := _start_time(pid)):
                return Process(pid, found)
        time.sleep(POLL_SECONDS)
    # Gone already: whoever asks for health next finds out and shows the log.
    return Process(parent.pid, 0)


def marked(mark: str) -> tuple[Process, ...]:
    """Everything that carries the mark, recorded or not."""
    wanted = f"{MARK}={mark}".encode()
    found = [identify(pid) for pid in _all_pids() if wanted in _environment(pid)]
    return tuple(process for process in found if process.start_time)


def in_session(leader: int) -> tuple[Process, ...]:
    """Everything that was started by what `start` started, unless it made its own session."""
    found = [identify(pid) for pid in _all_pids() if _session_of(pid) == leader]
    return tuple(process for process in found if process.start_time)


def inside(network_namespace: Path) -> tuple[Process, ...]:
    """Everything that uses the network namespace, whoever started it."""
    try:
        wanted = network_namespace.stat().st_ino
    except FileNotFoundError:
        return ()
    found = [identify(pid) for pid in _all_pids() if _network_of(pid) == wanted]
    return tuple(process for process in found if process.start_time)


def save(path: Path, process: Process, fingerprint: str) -> None:
    write_json(path, {**asdict(process), "fingerprint": fingerprint})


def load(path: Path) -> tuple[Process, str] | None:
    """The recorded process and the fingerprint of what it was started from."""
    value = read_json(path)
    if value is None:
        return None
    return Process(value["pid"], value["start_time"]), value["fingerprint"]


def _reap(pid: int) -> None:
    if pid in _children and os.waitpid(pid, os.WNOHANG)[0] == pid:
        _children.remove(pid)


def _all_pids() -> list[int]:
    return [int(entry) for entry in os.listdir(PROC) if entry.isdigit()]


def _has_running_thread(pid: int) -> bool:
    threads = (PROC / str(pid) / "task").glob("*")
    found = (_stat(int(thread.name)) for thread in threads)
    return any(fields is not None and fields[0] not in "TtZX" for fields in found)


def _stat(pid: int) -> list[str] | None:
    """The fields after the command, whose name may contain spaces and parentheses."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


def _start_time(pid: int) -> int | None:
    """None for the dead and for zombies: they wait for their parent and do nothing else.

    But a zombie whose other threads still exit holds its sockets until the last of them is gone.
    """
    fields = _stat(pid)
    if fields is None or (fields[0] in "ZX" and int(fields[17]) <= 1):
        return None
    return int(fields[19])


def _parent_of(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def _session_of(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[3]) if fields else None


def _environment(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _network_of(pid: int) -> int | None:
    try:
        return (PROC / str(pid) / "ns" / "net").stat().st_ino
    except OSError:
        return None


@contextmanager
def _pidfd(pid: int) -> Iterator[int | None]:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
