"""Links programs with the Go toolchain into a cache that all clones share.

    python -m local_cluster.go_toolchain 1.37

links those of a cluster, and needs no package beside Python's own: `make` does it while it
installs them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from local_cluster import programs
from local_cluster.cache import cache_dir
from local_cluster.errors import BuildError
from local_cluster.files import locked
from local_cluster.programs import Binaries, Program
from local_cluster.progress import say
from local_cluster.steps import step

MODULES = Path(__file__).resolve().parent.parent
REPORT_SECONDS = 15.0


def build_all(kubernetes: str, *, kubelets: str = "", with_nodes: bool) -> Binaries:
    """Link what is missing. Without nodes containerd is not needed, so not built.

    `kubelets` is the Kubernetes version of the kubelets, if it is another one.
    """
    of_nodes = kubelets if kubelets and with_nodes else kubernetes
    versions = dict.fromkeys((kubernetes, of_nodes))
    wanted = [*map(programs.kubernetes, versions), programs.ETCD]
    if with_nodes:
        wanted += [programs.CONTAINERD, programs.CNI]
    built = dict(zip([program.name for program in wanted], ensure_all(wanted), strict=True))
    unused = Path("not-built")
    return Binaries(
        kubernetes=built[f"kubernetes-{kubernetes}"],
        etcd=built["etcd"],
        containerd=built.get("containerd", unused),
        cni=built.get("cni", unused),
        kubelets=built[f"kubernetes-{of_nodes}"],
    )


def ensure_built(program: Program) -> Path:
    """The folder with the program's binaries, linked now if the cache lacks it."""
    return ensure_all([program])[0]


def ensure_all(wanted: Sequence[Program]) -> list[Path]:
    """The folders of all; what the cache lacks is linked by one command for each Go module.

    A module is built once at a time: a second build that starts meanwhile waits, and then finds
    most of its packages compiled.
    """
    found = [_sources_of(program) for program in wanted]
    for module in sorted({sources.program.module for sources in found if sources.is_missing}):
        with locked(cache_dir() / "bin" / f"{module}.lock"):
            if missing := [s for s in found if s.program.module == module and s.is_missing]:
                _build(module, missing)
    return [sources.target for sources in found]


def find_built(program: Program) -> Path | None:
    """The folder with the program's binaries, if the cache has it."""
    sources = _sources_of(program)
    return None if sources.is_missing else sources.target


@dataclass(frozen=True)
class _Sources:
    program: Program
    files: Mapping[str, bytes]
    target: Path

    @property
    def is_missing(self) -> bool:
        return not self.target.is_dir()

    @property
    def go_mod(self) -> str:
        return self.files["./go.mod"].decode()

    @property
    def label(self) -> str:
        version = programs.required_version(self.go_mod, self.program.requirement)
        return f"{self.program.name} {version}"


def _sources_of(program: Program) -> _Sources:
    module = MODULES / program.module
    files = {
        f"{folder}/{path.name}": path.read_bytes()
        for folder in program.folders
        for path in sorted((module / folder).iterdir())
        if path.is_file()
    }
    digest = programs.content_hash(files, _go(("env", "GOVERSION", "GOARCH")))
    return _Sources(program, files, cache_dir() / "bin" / f"{program.name}-{digest}")


def _go(argv: Sequence[str], cwd: Path | None = None) -> str:
    done = subprocess.run(
        [_compiler(), *argv],
        cwd=cwd,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BuildError(f"go {' '.join(argv)}: {done.stderr.strip()}")
    return " ".join(done.stdout.split())


def _compiler() -> str:
    if (found := shutil.which("go")) is None:
        raise BuildError("the Go toolchain is not on PATH; deploy/local links Kubernetes with it")
    return found


def _environment() -> dict[str, str]:
    return {**os.environ, **programs.ENVIRONMENT}


def _build(module: str, missing: Sequence[_Sources]) -> None:
    """Link into temporary folders and rename: a killed build leaves no half program."""
    names = ", ".join(sources.label for sources in missing)
    packages = [package for sources in missing for package in sources.program.packages]
    target = missing[0].target
    log = target.with_name(f"{target.name}.log")
    with step(f"linking {names}"), _temporary(log.parent) as output:
        total = len(_go(programs.list_argv(packages), MODULES / module).split())
        say(f"the sources of {total} packages are here, to be compiled or reused")
        argv = programs.build_argv(packages, missing[0].go_mod, output)
        _run_build(argv, MODULES / module, log, total)
        with ExitStack() as stack:
            for sources in missing:
                _install(sources, output, stack.enter_context(_temporary(log.parent)))


def _install(sources: _Sources, output: Path, folder: Path) -> None:
    program = sources.program
    for name in program.binaries:
        (output / name).rename(folder / name)
    for link in program.links:
        (folder / link).symlink_to(program.binaries[0])
    folder.chmod(0o755)
    folder.rename(sources.target)


@contextmanager
def _temporary(parent: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=".building-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_build(argv: Sequence[str], source: Path, log: Path, total: int) -> None:
    with log.open("w") as output:
        process = subprocess.Popen(
            [_compiler(), *argv],
            cwd=source,
            env={**_environment(), **programs.COMPILING},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        reporter = threading.Timer(0, _report_progress, (process, log, total))
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
        raise BuildError(f"{source.name} does not build; see {log}\n{_tail(log)}")


def _report_progress(process: subprocess.Popen[bytes], log: Path, total: int) -> None:
    """`go build -v` names each package as it is compiled; cached ones are not named."""
    started = time.monotonic()
    while True:
        try:
            process.wait(REPORT_SECONDS)
        except subprocess.TimeoutExpired:
            compiled = len(log.read_text().splitlines())
            elapsed = time.monotonic() - started
            say(f"{compiled} of at most {total} packages compiled in {elapsed:.0f} s")
        else:
            return


def _tail(log: Path) -> str:
    return "\n".join(log.read_text().splitlines()[-20:])


def main() -> int:
    """Link the programs of the Kubernetes version that is the argument."""
    try:
        build_all(sys.argv[1], with_nodes=True)
    except BuildError as error:
        say(f"failed: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
