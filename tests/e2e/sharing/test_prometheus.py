"""A real Prometheus scrapes the plugin: what it stores is what the API says, and rules load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.scraping import Prometheus, scraping
from tests.e2e.sharing.installation import NODE, PAGES_URL, ROOT
from tests.e2e.sharing.stories import Story

ALERTS = ROOT / "deploy" / "helm" / "moorage" / "files" / "alerts.yaml"
PREFIX = "moorage_scheduler_plugin_"


@pytest.fixture
def prometheus(story: Story, tmp_path: Path) -> Iterator[Prometheus]:
    job = {"job_name": "plugin", "static_configs": [{"targets": [PAGES_URL.partition("//")[2]]}]}
    with scraping(story.cluster, NODE, tmp_path, [job], rule_files=[str(ALERTS)]) as found:
        yield found


def test_prometheus_stores_what_the_api_says(story: Story, prometheus: Prometheus) -> None:
    queue, guest = story.queue("payer", quota=2, limit=3), story.queue("guest")
    story.devices(2)
    story.claim()
    for name, of in (("first", queue), ("second", guest)):
        story.pod(name, of)
        story.wait_bound(name)
    row = f'{{queue="{queue}",device_class="{story.name}"}}'

    def is_told(name: str, expected: float, labels: str = row) -> None:
        query = f"{PREFIX}{name}{labels}"
        story.until(f"{query} is {expected}", lambda: prometheus.value(query) == expected)

    told = {"owned": 1, "sharedOut": 1}
    story.until("the status says it", lambda: story.get("queue", queue)["status"]["claims"] == told)
    status, spec = story.get("queue", queue)["status"], story.get("queue", queue)["spec"]
    (listed,) = spec["resources"]
    is_told("queue_usage", status["usage"][story.name])
    is_told("queue_requested", status["requested"][story.name])
    is_told("queue_quota", listed["quota"])
    is_told("queue_limit", listed["limit"])
    is_told("queue_claims", status["claims"]["owned"], f'{{queue="{queue}"}}')
    is_told("queue_claims_shared_out", status["claims"]["sharedOut"], f'{{queue="{queue}"}}')
    is_told("queue_foreign_claims", 1, f'{{queue="{guest}"}}')
    is_told("serving", 1, "")
    assert_all_binds_are_told(story, prometheus)


def assert_all_binds_are_told(story: Story, prometheus: Prometheus) -> None:
    bound = prometheus.value(f'{PREFIX}binds_total{{result="bound"}}')
    assert bound is not None
    assert bound >= 2
    calls = f'sum({PREFIX}call_duration_seconds_count{{verb="bind"}})'
    untold = f"{calls} - sum({PREFIX}binds_total)"
    story.until("each call was answered", lambda: prometheus.value(untold) == 0)


def test_a_refusal_and_a_pod_that_waits_are_counted(story: Story, prometheus: Prometheus) -> None:
    queue = story.queue("full", quota=0, limit=0)
    story.devices(1)
    story.claim()
    query = f'{PREFIX}verdicts_total{{verb="filter",reason="OverLimit"}}'
    before = prometheus.value(query) or 0
    story.pod("waits", queue)
    story.wait_refused("waits", "OverLimit")

    story.until("the refusal is counted", lambda: (prometheus.value(query) or 0) > before)
    waiting = f'{PREFIX}waiting_pods{{queue="{queue}"}}'
    story.until("the pod is counted", lambda: prometheus.value(waiting) == 1)


def test_prometheus_takes_every_alert_and_raises_what_is_so(
    story: Story, prometheus: Prometheus
) -> None:
    """Nobody scrapes a shared driver here: its alert is about to be raised, the plugin's is not."""
    groups: list[Any] = []

    def are_looked_at() -> bool:
        found = prometheus.asked("/api/v1/rules")
        groups[:] = found["groups"] if found else []
        return bool(groups) and all(rule["health"] == "ok" for rule in groups[0]["rules"])

    story.until("all rules are looked at", are_looked_at)
    written = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    states = {rule["name"]: rule["state"] for rule in groups[0]["rules"]}
    assert set(states) == {rule["alert"] for rule in written}
    assert states["MoorageNoSharedDriver"] == "pending"
    story.until("the plugin was scraped", lambda: prometheus.value(f"{PREFIX}serving") == 1)
