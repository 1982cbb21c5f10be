"""The committed stubs are what `proto/` generates, and the check tells when they are not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import stubs

DRA = "driver/kubelet_api/dra/v1"

ORIGINS = (
    "// A wire contract of the kubelet: k8s.io/kubelet v",
    "// A wire contract of Akri v",
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the check reads."""
    root = tmp_path_factory.mktemp("checkout")
    for folder in ("proto", *stubs.TREES):
        shutil.copytree(stubs.ROOT / folder, root / folder)
    return root


def test_committed_stubs_are_not_stale() -> None:
    assert stubs.check(stubs.ROOT) == []


def test_each_kind_of_staleness_is_told(checkout: Path, tmp_path: Path) -> None:
    shutil.copytree(checkout, tmp_path, dirs_exist_ok=True)
    (tmp_path / DRA / "api_pb2.py").write_text("")
    (tmp_path / DRA / "api_pb2_grpc.pyi").unlink()
    (tmp_path / DRA / "old_pb2.py").touch()

    assert stubs.stale(tmp_path, checkout) == [
        f"missing: {DRA}/api_pb2_grpc.pyi",
        f"left over: {DRA}/old_pb2.py",
        f"differs: {DRA}/api_pb2.py",
    ]


def test_compiled_caches_are_no_difference(checkout: Path, tmp_path: Path) -> None:
    shutil.copytree(checkout, tmp_path, dirs_exist_ok=True)
    (tmp_path / DRA / "__pycache__").mkdir(exist_ok=True)
    (tmp_path / DRA / "__pycache__" / "api_pb2.cpython-311.pyc").touch()

    assert stubs.stale(tmp_path, checkout) == []


def test_contract_that_nobody_compiles_is_told(checkout: Path, tmp_path: Path) -> None:
    shutil.copytree(checkout / "proto", tmp_path / "proto")
    (tmp_path / "proto" / "__init__.py").touch()
    (tmp_path / "proto" / "other").mkdir()
    (tmp_path / "proto" / "other" / "api.proto").touch()

    assert stubs.strays(tmp_path) == [
        "not compiled: proto/__init__.py",
        "not compiled: proto/other/api.proto",
    ]


def test_broken_contract_leaves_the_stubs_alone(checkout: Path, tmp_path: Path) -> None:
    shutil.copytree(checkout, tmp_path, dirs_exist_ok=True)
    (tmp_path / "proto/dra/v1/api.proto").write_text("message {")

    with pytest.raises(stubs.StubsError, match=r"dra/v1/api\.proto"):
        stubs.write(tmp_path)

    assert stubs.stale(tmp_path, checkout) == []


def test_every_contract_says_where_it_came_from() -> None:
    for contract in (stubs.ROOT / "proto").rglob("*.proto"):
        first = contract.read_text().splitlines()[0]
        assert first.startswith(ORIGINS), contract
