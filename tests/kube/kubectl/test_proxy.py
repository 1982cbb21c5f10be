"""kubectl as a child: when it is used, and that it never outlives the command."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube.kubectl import proxy
from kube.kubectl_client import Choice, started
from tests.fakes.scripted_apiserver import kubeconfig_for

HOLDS = """
import signal, sys, time
from pathlib import Path
from kube.kubectl_client import Choice, started
# A job in the background ignores the one, and one of nohup the other.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
with started(Choice(Path(sys.argv[1]))) as kubectl:
    assert kubectl and (sys.argv[2] == "early" or kubectl.listens())
    print(kubectl._folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def choice(on_path: Path, tmp_path: Path) -> Choice:
    return Choice(kubeconfig_for(tmp_path, 1))


@pytest.fixture(autouse=True)
def sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the folders of sockets are; none is left at the end."""
    folder = tmp_path / "s"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield folder
    assert list(folder.iterdir()) == []


def test_its_socket_is_for_the_user_alone(choice: Choice, sockets: Path) -> None:
    with started(choice) as kubectl:
        assert kubectl
        assert kubectl.listens()
        (folder,) = sockets.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(("mode", "listens"), [("", True), ("slow", True), ("ends", False)])
def test_it_is_waited_for_until_it_listens_or_ends(
    mode: str, listens: bool, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_KUBECTL", mode)

    with started(choice) as kubectl:
        assert kubectl
        assert kubectl.listens() is listens


def test_one_that_never_listens_is_given_up(
    choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_KUBECTL", "deaf")
    monkeypatch.setattr(proxy, "LISTEN_SECONDS", 0.3)

    with started(choice) as kubectl:
        assert kubectl
        assert not kubectl.listens()


def test_without_kubectl_or_kubeconfig_there_is_none(
    choice: Choice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(Choice(tmp_path / "absent")) as kubectl:
        assert kubectl is None
    monkeypatch.setenv("PATH", str(tmp_path))
    with started(choice) as kubectl:
        assert kubectl is None


def test_a_pipe_is_left_to_the_client_that_reads_it_once(
    choice: Choice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of `KUBECONFIG=<(vault …)`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setenv("KUBECONFIG", f"{choice.file}{os.pathsep}{pipe}")

    with started(Choice()) as kubectl:
        assert kubectl is None


def test_without_a_context_kubectl_is_not_started(choice: Choice) -> None:
    """It would ask a server on this machine, and believe any web server there."""
    assert choice.file
    choice.file.write_text(choice.file.read_text().replace("current-context: fake", ""))

    with started(choice) as kubectl:
        assert kubectl is None
    with started(Choice(choice.file, "fake")) as kubectl:
        assert kubectl


def test_a_folder_that_cannot_be_made_is_no_fault(
    choice: Choice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))

    with started(choice) as kubectl:
        assert kubectl is None


@pytest.mark.parametrize("mode", ["", "wrapped"])
@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_it_ends_with_the_command_however_that_ends(
    sent: signal.Signals,
    when: str,
    mode: str,
    choice: Choice,
    sockets: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_KUBECTL", mode)
    command = (sys.executable, "-c", HOLDS, str(choice.file), when)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout
        folder = Path(process.stdout.readline().strip())
        assert when == "early" or len(_running(folder)) == (2 if mode else 1) + _SHELLS
        process.send_signal(sent)

    assert sockets.samefile(folder.parent)
    assert _left(folder) == set()
    assert not folder.exists()


_SHELLS = 1
"""The one beside it, whose command line names the folder, too."""


@pytest.mark.parametrize("when", ["early", "late"])
def test_one_that_a_script_started_ends_with_its_use(
    when: str, choice: Choice, sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `kubectl` on PATH may be a script that ends with `/usr/bin/kubectl "$@"`."""
    monkeypatch.setenv("FAKE_KUBECTL", "wrapped")

    with started(choice) as kubectl:
        assert kubectl
        (folder,) = sockets.iterdir()
        assert when == "early" or kubectl.listens()

    assert _left(folder) == set()


def _left(folder: Path) -> set[int]:
    """What still runs after a while that suffices."""
    until = time.monotonic() + 10
    while (_running(folder) or folder.exists()) and time.monotonic() < until:
        time.sleep(0.02)
    return _running(folder)


def _running(folder: Path) -> set[int]:
    """The processes whose command lines name the folder; one that is a zombie has none."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.fsencode(folder) in (process / "cmdline").read_bytes():
                found.add(int(process.name))
    return found


def test_it_may_ask_on_our_standard_input_and_is_heard(
    choice: Choice, sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As credential plugins do; what kubectl logs is not shown."""
    monkeypatch.setenv("FAKE_KUBECTL", "asks")
    asks = """
import sys
from pathlib import Path
from kube.kinds import PODS
from kube.kubectl_client import ApiError, Choice, KubectlClient, finished, started
choice = Choice(Path(sys.argv[1]))
with started(choice) as kubectl:
    assert kubectl.listens()
    try:
        finished(KubectlClient(kubectl, choice).get(PODS.at("a", "ns")))
    except ApiError:
        pass
"""
    command = (sys.executable, "-c", asks, str(choice.file))

    done = subprocess.run(
        command, input="secret\n", capture_output=True, text=True, check=True, env=os.environ
    )

    assert (done.stdout, done.stderr) == ("", "Password: (secret)\n")
