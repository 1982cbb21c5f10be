"""Alert rules, by Prometheus' own tool: their syntax, and what raises each of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_cluster.debian import ensure_packages, find

ROOT = Path(__file__).parents[2]
FILES = ROOT / "deploy" / "helm" / "moorage" / "files"
CASES = ROOT / "tests" / "deploy" / "alerts_test.yaml"


@pytest.fixture(scope="module")
def promtool() -> str:
    ensure_packages({"prometheus": "promtool"})
    found = find("promtool")
    assert found is not None
    return found


def run(*words: str, folder: Path) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_are_what_prometheus_takes(promtool: str) -> None:
    run(promtool, "check", "rules", "--lint-fatal", "alerts.yaml", folder=FILES)


def test_each_alert_is_raised_by_what_it_is_about(promtool: str, tmp_path: Path) -> None:
    for file in (FILES / "alerts.yaml", CASES):
        shutil.copy(file, tmp_path)

    run(promtool, "test", "rules", CASES.name, folder=tmp_path)


def test_every_alert_is_raised_in_the_cases() -> None:
    (group,) = yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"]
    raised = CASES.read_text().partition("promql_expr_test:")[2]

    assert {rule["alert"] for rule in group["rules"]} == {
        rule["alert"] for rule in group["rules"] if f'"{rule["alert"]}"' in raised
    }


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FILES / "dashboard.json").read_text())["panels"]
    return found


def test_panels_have_a_number_a_place_and_a_question_each() -> None:
    shown = [panel for panel in panels() if panel["type"] != "row"]

    assert len({panel["id"] for panel in panels()}) == len(panels())
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not cells & taken
        assert all(x < 24 for x, _ in cells)
        taken |= cells
    assert all(panel["targets"] and panel["description"] for panel in shown)


def test_every_question_of_the_dashboard_is_promql(promtool: str, tmp_path: Path) -> None:
    asked = [t["expr"] for panel in panels() for t in panel.get("targets", ())]
    rules = [
        {
            "record": f"asked:{number}",
            "expr": expr.replace("$queue", ".*").replace("$device_class", ".*"),
        }
        for number, expr in enumerate(asked)
    ]
    file = tmp_path / "asked.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "asked", "rules": rules}]}))

    run(promtool, "check", "rules", file.name, folder=tmp_path)
