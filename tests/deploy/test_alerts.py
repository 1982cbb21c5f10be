"""Alert rules, by Prometheus' own tool, and the dashboard, by Grafana's own schema."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from local_cluster.debian import ensure_packages, find
from tests.deploy.documents import documents_in

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


def test_a_refusal_by_any_policy_is_told() -> None:
    """By name: those about accounts of ours, and those about everybody's writes."""
    (group,) = yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"]
    told = {
        rule["alert"]: re.findall(r'policy=~"([^"]+)"', rule["expr"]) for rule in group["rules"]
    }
    ours, others = told["MoorageAccountRefused"], told["MooragePolicyRefuses"]
    assert len(set(ours)) == len(set(others)) == 1

    for name in policies():
        told_by = [bool(re.fullmatch(pattern, name)) for pattern in (ours[0], others[0])]
        assert sum(told_by) == 1, name


def policies() -> set[str]:
    folders = (ROOT / "deploy" / "policies", ROOT / "deploy" / "manifests")
    documents = (d for folder in folders for found in documents_in(folder).values() for d in found)
    kind = "ValidatingAdmissionPolicy"
    return {d["metadata"]["name"] for d in documents if d["kind"] == kind}


def test_the_dashboard_has_no_field_that_grafanas_schema_does_not_have() -> None:
    """The schema of kind Dashboard, as types that Grafana makes of it: what it lacks is dropped."""
    data = json.loads((FILES / "dashboard.json").read_text())

    kept = json.loads(JSONEncoder().encode(Dashboard.from_json(data)))

    assert list(lost(data, kept)) == []
    data["panels"][1]["exprs"] = []
    kept = json.loads(JSONEncoder().encode(Dashboard.from_json(data)))
    assert list(lost(data, kept)) == [".panels[1].exprs"]


def lost(given: Any, kept: Any, path: str = "") -> Iterator[str]:
    """Where something is not as it was given; what was added does not matter."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            yield from lost(value, kept.get(key), f"{path}.{key}")
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for number, (one, other) in enumerate(zip(given, kept, strict=True)):
            yield from lost(one, other, f"{path}[{number}]")
    elif given != kept:
        yield path


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
