"""Generate the stubs of `proto/`, or check that the committed ones are what it generates.

    python -m tests.stubs --write     anew into the tree
    python -m tests.stubs --check     into a temporary folder, and compare

Upstream calls each of its files `api.proto`, and the messages of one process are registered by
file name. So each is compiled under the path where its stubs go: protoc's `-I<virtual>=<real>`.
The protobuf *package* stays upstream's, since it is part of the path of each gRPC method.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from tests import generated
from tests.contracts import COMPILED_BY_TESTS

ROOT = Path(__file__).resolve().parent.parent

PACKAGES: Mapping[str, str] = {
    "proto/deviceplugin/v1beta1": "driver/kubelet_api/deviceplugin/v1beta1",
    "proto/discovery/v0": "driver/discovery_api/v0",
    "proto/dra-health/v1": "driver/kubelet_api/dra_health/v1",
    "proto/dra/v1": "driver/kubelet_api/dra/v1",
    "proto/pluginregistration/v1": "driver/kubelet_api/pluginregistration/v1",
    "proto/podresources/v1": "driver/kubelet_api/podresources/v1",
}
"""Folder of `.proto` files to the package of their stubs."""

TREES: Mapping[str, str] = {
    "driver/discovery_api": "The contract of discovery handlers",
    "driver/kubelet_api": "The kubelet's contracts",
}
"""Packages that hold stubs and nothing else, and what they are."""

PLUGINS = ("mypy", "mypy_grpc")
OUTPUTS = ("python", "grpc_python", *PLUGINS)


class StubsError(Exception):
    """Raised when protoc refuses a `.proto` file; the text is protoc's own."""


def generate(source: Path, target: Path) -> None:
    """Write the stubs of the `.proto` files below `source` into `target`."""
    files = {
        f"{package}/{file.name}": file
        for folder, package in PACKAGES.items()
        for file in sorted((source / folder).glob("*.proto"))
    }
    _protoc(
        *(f"-I{package}={source / folder}" for folder, package in PACKAGES.items()),
        *(f"--plugin=protoc-gen-{name}={_installed(name)}" for name in PLUGINS),
        *(f"--{output}_out={target}" for output in OUTPUTS),
        *files,
    )
    _make_packages(target)


def _installed(plugin: str) -> Path:
    """The plugin of this interpreter's environment, which need not be on the PATH."""
    return Path(sys.executable).parent / f"protoc-gen-{plugin}"


def _protoc(*arguments: str) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise StubsError(finished.stderr.strip())


def _make_packages(target: Path) -> None:
    for tree, what in TREES.items():
        folders = {folder for package in PACKAGES.values() for folder in _within(tree, package)}
        for folder in folders:
            docstring = f'"""{what}: stubs that `make proto` generates from proto/."""\n'
            (target / folder / "__init__.py").write_text(docstring)


def _within(tree: str, package: str) -> Iterable[str]:
    """The package and those above it, up to the tree."""
    path = PurePosixPath(package)
    return (str(folder) for folder in (path, *path.parents) if folder.is_relative_to(tree))


def stale(committed: Path, fresh: Path) -> list[str]:
    """What the committed stubs lack, have too much, or have otherwise."""
    have, want = _contents(committed), _contents(fresh)
    return [
        *(f"missing: {path}" for path in sorted(want.keys() - have.keys())),
        *(f"left over: {path}" for path in sorted(have.keys() - want.keys())),
        *(f"differs: {path}" for path in sorted(have) if have[path] != want.get(path, have[path])),
    ]


def _contents(root: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(root)): file.read_bytes()
        for tree in TREES
        for file in (root / tree).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def strays(root: Path) -> list[str]:
    """What is in `proto/` and yet no contract that gets compiled."""
    compiled = {*PACKAGES, *(f"proto/{folder}" for folder in COMPILED_BY_TESTS)}
    found = (
        path.relative_to(root) for path in sorted((root / "proto").rglob("*")) if path.is_file()
    )
    return [
        f"not compiled: {path}"
        for path in found
        if path.suffix != ".proto" or str(path.parent) not in compiled
    ]


def check(root: Path) -> list[str]:
    """What is wrong in the tree at `root`; changes nothing."""
    with tempfile.TemporaryDirectory() as folder:
        generate(root, Path(folder))
        return strays(root) + stale(root, Path(folder))


def write(root: Path) -> None:
    """Replace the stubs of the tree at `root`; after an error they are what they were."""
    with tempfile.TemporaryDirectory() as folder:
        generate(root, Path(folder))
        for tree in TREES:
            shutil.rmtree(root / tree, ignore_errors=True)
            shutil.copytree(Path(folder) / tree, root / tree)


def main() -> str | None:
    """What to complain about, or None."""
    try:
        problems = generated.run("tests.stubs", __doc__, lambda: write(ROOT), lambda: check(ROOT))
    except StubsError as error:
        return str(error)
    return "\n".join([*problems, "Run `make proto`."]) if problems else None


if __name__ == "__main__":
    sys.exit(main())
