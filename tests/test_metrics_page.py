"""`docs/metrics.md` and what is exported are one: all figures of three components, both ways."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from prometheus_client import Counter, Gauge, Histogram

from binder.reclaiming import prometheus_reclaims
from driver.plumbing import prometheus as driver
from kube.reconciling import prometheus_queues
from scheduler_plugin.extender import prometheus_calls
from scheduler_plugin.pages import prometheus as pages
from webhook import prometheus as webhook

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "metrics.md"
FILES = ROOT / "deploy" / "helm" / "moorage" / "files"

Figure = tuple[str, tuple[str, ...], str]
"""Kind, labels and meaning."""


def counted(*modules: ModuleType) -> Iterator[tuple[str, Figure]]:
    for one in (value for module in modules for value in vars(module).values()):
        if isinstance(one, Counter | Gauge | Histogram):
            (described,) = one.describe()
            name = f"{described.name}_total" if isinstance(one, Counter) else described.name
            yield name, (described.type, one._labelnames, described.documentation)  # noqa: SLF001


def plugin_figures() -> dict[str, Figure]:
    found = dict(counted(prometheus_calls, prometheus_reclaims, pages))
    for name, (labels, meaning) in pages.MEANINGS.items():
        found[f"moorage_scheduler_plugin_{name}"] = ("gauge", labels, meaning)
    return found


def driver_figures(prefix: str = "") -> dict[str, Figure]:
    found = dict(counted(driver))
    for one in vars(driver).values():
        if isinstance(one, driver.Gauge):
            found[one.name] = ("gauge", one.labels, one.meaning)
    return {name: figure for name, figure in found.items() if name.startswith(prefix)}


def row(name: str, figure: Figure) -> str:
    kind, labels, meaning = figure
    return f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {meaning} |"


def on_page(prefix: str) -> dict[str, str]:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{prefix}")]
    # The driver's have a column more, which tells which of the two has it.
    return {line.split("`")[1]: re.sub(r" \| (both|node|shared) \|", " |", line) for line in rows}


ALL = {**plugin_figures(), **driver_figures(), **dict(counted(webhook))}


@pytest.mark.parametrize(
    ("prefix", "figures"),
    [
        ("moorage_scheduler_plugin_", plugin_figures()),
        ("workqueue_", dict(counted(prometheus_queues))),
        ("moorage_webhook_", dict(counted(webhook))),
        ("moorage_driver_", driver_figures("moorage_driver_")),
        ("akri_", driver_figures("akri_")),
    ],
)
def test_the_page_has_every_figure_and_no_other(prefix: str, figures: dict[str, Figure]) -> None:
    assert figures
    rows = {name: row(name, figure) for name, figure in figures.items()}
    shown = {name: line for name, line in on_page(prefix).items() if line.count("|") == 5}

    assert shown == rows


@pytest.mark.parametrize("name", sorted(ALL))
def test_names_are_those_that_prometheus_asks_for(name: str) -> None:
    kind, _, meaning = ALL[name]

    assert name.endswith("_total") is (kind == "counter")
    assert name.endswith("_seconds") is (kind == "histogram")
    assert meaning.endswith(".")


def used_names(text: str) -> set[str]:
    names = set(re.findall(r"\bmoorage_[a-z_]+", text))
    return {re.sub(r"_seconds_(bucket|sum|count)$", "_seconds", name) for name in names}


@pytest.mark.parametrize("file", ["alerts.yaml", "dashboard.json"])
def test_rules_and_dashboard_use_figures_that_there_are(file: str) -> None:
    used = used_names((FILES / file).read_text())

    assert used
    assert used <= set(ALL)


def test_the_page_names_every_alert() -> None:
    (group,) = yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"]

    assert {rule["alert"] for rule in group["rules"]} == set(
        re.findall(r"^\| `(Moorage\w+)` \|", PAGE.read_text(), re.MULTILINE)
    )
