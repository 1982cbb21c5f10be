"""Steps that take long tell of the last time."""

from __future__ import annotations

from pathlib import Path

import pytest

from local_cluster import steps
from local_cluster.steps import step


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[float]:
    """The seconds on the clock, each read once; the cache is empty."""
    monkeypatch.setenv("MOORAGE_CACHE", str(tmp_path))
    found: list[float] = []
    monkeypatch.setattr(steps, "monotonic", lambda: found.pop(0))
    return found


def test_the_second_time_is_told_how_long_the_first_took(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    clock += [0.0, 417.0, 500.0, 530.0, 600.0, 601.5]

    with step("linking kubernetes"):
        first = capsys.readouterr().err
    with step("linking kubernetes"):
        pass
    with step("another"):
        pass

    assert first == "local-cluster: linking kubernetes ...\n"
    assert "linking kubernetes: done in 417 s" in (told := capsys.readouterr().err)
    assert "linking kubernetes ... (last time 417 s)" in told
    assert "another ...\n" in told


def test_a_step_that_failed_or_had_nothing_to_do_is_not_remembered(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    clock += [0.0, 1.0, 1.5, 2.0, 3.0, 3.5, 4.0]

    with pytest.raises(ZeroDivisionError), step("failing"):
        _ = 1 // 0
    with step("warm"):
        pass
    with step("failing"), step("warm"):
        pass

    assert "last time" not in capsys.readouterr().err


def test_a_file_that_a_crash_cut_off_is_no_error(tmp_path: Path, clock: list[float]) -> None:
    (tmp_path / "seconds.json").write_text('{"linking": 4')
    clock += [0.0, 5.0]

    with step("linking"):
        pass

    assert "5.0" in (tmp_path / "seconds.json").read_text()
