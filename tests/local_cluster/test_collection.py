"""What explains a failed test is gathered while the cluster goes on."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

from local_cluster.collection import QUESTIONS, collect
from local_cluster.layout import Layout


def test_a_log_that_the_kubelet_removes_meanwhile_keeps_nothing_else_away(tmp_path: Path) -> None:
    layout, target = Layout(tmp_path / "cluster"), tmp_path / "found"
    (layout.work_dir / "nodes" / "node-a").mkdir(parents=True)
    logs = layout.node("node-a").private("/var/log/pods")
    logs.mkdir(parents=True)
    layout.logs.mkdir()
    (logs / "kept.log").write_text("it works")
    (logs / "removed.log").symlink_to(logs / "gone")

    collect(layout, lambda *_, **__: CompletedProcess((), 0, "an answer", ""), target)

    assert (target / "pods" / "node-a" / "kept.log").read_text() == "it works"
    assert {(target / name).read_text() for name in QUESTIONS} == {"an answer"}
