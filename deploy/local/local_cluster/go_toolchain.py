"""Links programs with the Go toolchain into a cache that all clones share."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from local_cluster import programs
from local_cluster.errors import BuildError
from local_cluster.files import locked
from local_cluster.programs import Binaries, Program
from local_cluster.progress import say

MODULES = Path(__file__).resolve().parent.parent
REPORT_SECONDS = 15.0


def cache_dir() -> Path:
    if own := os.environ.get("MOORAGE_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "moorage"


def build_all(kubernetes: str, *, with_nodes: bool) -> Binaries:
    """Link what is missing. Without nodes containerd is not needed, so not built."""
    wanted = [programs.kubernetes(kubernetes), programs.ETCD]
    if with_nodes:
        wanted += [programs.CONTAINERD, programs.CNI]
    with ThreadPoolExecutor(max_workers=len(wanted)) as pool:
        built = dict(zip([p.module for p in wanted], pool.map(ensure_built, wanted), strict=True))
    unused = Path("not-built")
    return Binaries(
        kubernetes=built[f"kubernetes-{kubernetes}"],
        etcd=built["etcd"],
        containerd=built.get("containerd", unused),
        cni=built.get("cni", unused),
    )


def ensure_built(program: Program) -> Path:
    """The folder with the program's binaries, linked now if the cache lacks it.

    Two clusters that start at the same time build once: the second waits for the lock.
    """
    source, files = _sources(program)
    target = _target(program, files)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked(target.with_name(f"{target.name}.lock")):
        if not target.is_dir():
            version = programs.required_version(files["go.mod"].decode(), program.requirement)
            _build(program, version, source, target)
    return target


def find_built(program: Program) -> Path | None:
    """The folder with the program's binaries, if the cache has it."""
    target = _target(program, _sources(program)[1])
    return target if target.is_dir() else None


def _sources(program: Program) -> tuple[Path, dict[str, bytes]]:
    source = MODULES / program.module
    return source, _files(source) | (_files(source / program.folder) if program.folder else {})


def _target(program: Program, files: dict[str, bytes]) -> Path:
    return cache_dir() / "bin" / f"{program.name}-{_hash(files)}"


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def _hash(files: dict[str, bytes]) -> str:
    return programs.content_hash(files, _go("env", "GOVERSION", "GOARCH"))


def _go(*args: str, cwd: Path | None = None) -> str:
    if shutil.which("go") is None:
        raise BuildError("the Go toolchain is not on PATH; deploy/local links Kubernetes with it")
    done = subprocess.run(["go", *args], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"go {' '.join(args)}: {done.stderr.strip()}")
    return " ".join(done.stdout.split())


def _build(program: Program, version: str, source: Path, target: Path) -> None:
    """Link into a temporary folder and rename: a killed build leaves no half program."""
    say(f"building {program.name} {version} (minutes the first time)")
    started = time.monotonic()
    with _temporary_beside(target) as output:
        log = target.with_name(f"{target.name}.log")
        total = len(_go("list", "-deps", program.package, cwd=source).split())
        say(f"{program.name}: sources are here, {total} packages to compile or reuse")
        _run_build(program, programs.build_argv(program, version, output), source, log)
        for link in program.links:
            (output / link).symlink_to(program.binaries[0])
        output.chmod(0o755)
        output.rename(target)
    say(f"built {program.name} {version} in {time.monotonic() - started:.0f} s")


@contextmanager
def _temporary_beside(target: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_build(program: Program, argv: tuple[str, ...], source: Path, log: Path) -> None:
    with log.open("w") as output:
        process = subprocess.Popen(argv, cwd=source, stdout=output, stderr=subprocess.STDOUT)
        reporter = threading.Timer(0, _report_progress, (program, process, log))
        reporter.start()
        try:
            code = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            reporter.join()
    if code != 0:
        raise BuildError(f"{program.name} does not build; see {log}\n{_tail(log)}")


def _report_progress(program: Program, process: subprocess.Popen[bytes], log: Path) -> None:
    """`go build -v` names each package as it is compiled; cached ones are not named."""
    started = time.monotonic()
    while True:
        try:
            process.wait(REPORT_SECONDS)
        except subprocess.TimeoutExpired:
            packages = len(log.read_text().splitlines())
            elapsed = time.monotonic() - started
            say(f"{program.name}: {packages} packages compiled in {elapsed:.0f} s")
        else:
            return


def _tail(log: Path) -> str:
    return "\n".join(log.read_text().splitlines()[-20:])
