"""Files of the local cluster."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from local_cluster.authority import Authority
from local_cluster.certificates import CertificateSpec
from local_cluster.files import locked, read_json, tail, write_atomically, write_json
from local_cluster.linux_mounts import mounts_below


def test_torn_json_counts_as_missing(tmp_path: Path) -> None:
    write_json(tmp_path / "whole.json", {"a": 1})
    (tmp_path / "torn.json").write_text('{"a":')

    assert read_json(tmp_path / "whole.json") == {"a": 1}
    assert read_json(tmp_path / "torn.json") is None
    assert read_json(tmp_path / "missing.json") is None


def test_atomic_write_leaves_nothing_beside(tmp_path: Path) -> None:
    write_atomically(tmp_path / "new" / "file", "one")
    write_atomically(tmp_path / "new" / "file", b"two", 0o644)

    (file,) = (tmp_path / "new").iterdir()
    assert file.read_text() == "two"
    assert file.stat().st_mode & 0o777 == 0o644


def test_lock_keeps_others_out(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "lock"),
        (tmp_path / "lock").open() as other,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_lock_whose_file_was_deleted_is_taken_anew(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path):
        path.unlink()

        with locked(path):
            assert path.exists()


def test_tail_of_a_missing_log_says_so(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("1\n2\n3\n")

    assert tail(tmp_path / "log", 2) == "2\n3"
    assert tail(tmp_path / "missing") == "(no log yet)"


def test_certificates_are_made_once_and_again_for_other_hosts(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    spec = CertificateSpec("web", "web", hosts=("198.18.0.1",))
    first = authority.issue(spec)[0].read_bytes()

    same = Authority(tmp_path).issue(spec)[0].read_bytes()
    other = authority.issue(CertificateSpec("web", "web", hosts=("198.18.0.2",)))[0].read_bytes()

    assert same == first
    assert other != first


def test_folder_has_no_mounts_but_proc_has(tmp_path: Path) -> None:
    assert mounts_below(tmp_path) == ()
    assert "/proc" in mounts_below(Path("/proc"))
