"""Opaque parameters for our driver in claims, templates and classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from driver.preparing.grants.claim_configs import ClaimConfigs
from scheduler_plugin.objects.api import NamespaceView
from tests.driver.claim_builders import a_claim, a_config, a_reference, with_configs
from tests.webhook.builders import a_review, rule_context
from webhook.findings import NOTHING_FOUND, Findings
from webhook.rules.claims import judge_claim
from webhook.rules.device_configs import judge_class

LAB = NamespaceView("lab", {})
Entries = list[dict[str, Any]]


def of_claim(entries: Entries) -> Findings:
    body = {"metadata": {"name": "cam"}, "spec": {"devices": {"config": entries}}}
    return judge_claim(a_review("ResourceClaim", body), LAB, rule_context())


def of_template(entries: Entries) -> Findings:
    body = {"metadata": {"name": "cam"}, "spec": {"spec": {"devices": {"config": entries}}}}
    return judge_claim(a_review("ResourceClaimTemplate", body), LAB, rule_context())


def of_class(entries: Entries) -> Findings:
    body = {"metadata": {"name": "cam"}, "spec": {"config": entries}}
    return judge_class(a_review("DeviceClass", body, body))


Judged = Callable[[Entries], Findings]
EACH = pytest.mark.parametrize(
    ("judged", "place"),
    [
        (of_claim, "spec.devices.config"),
        (of_template, "spec.spec.devices.config"),
        (of_class, "spec.config"),
    ],
    ids=["claim", "template", "class"],
)


def written(fields: dict[str, Any], driver: str = "moorage.dev") -> dict[str, Any]:
    return {"opaque": a_config(fields, driver=driver)["opaque"]}


@EACH
def test_what_is_right_is_admitted(judged: Judged, place: str) -> None:
    assert judged([written({"env": {"FPS": "25"}, "mode": "0660"})]) == NOTHING_FOUND


@EACH
def test_parameters_of_other_drivers_are_theirs(judged: Judged, place: str) -> None:
    assert judged([written({"mode": 7}, driver="gpu.example.com"), {}]) == NOTHING_FOUND


@EACH
def test_problem_names_the_entry_and_its_field(judged: Judged, place: str) -> None:
    found = judged([written({}), written({"mode": "rw", "colour": "red"})])

    assert [problem.path for problem in found.problems] == [
        f"{place}[1].opaque.parameters.mode",
        f"{place}[1].opaque.parameters.colour",
    ]


@EACH
def test_kind_must_be_told(judged: Judged, place: str) -> None:
    found = judged([{"opaque": {"driver": "moorage.dev", "parameters": {}}}])

    assert [str(problem) for problem in found.problems] == [
        f"{place}[0].opaque.parameters.apiVersion: Field required.",
        f"{place}[0].opaque.parameters.kind: Field required.",
    ]


def test_node_says_the_same_of_a_claim() -> None:
    """Were the webhook down, the user would read it in an Event of his pod."""
    entries = [a_config({}), a_config({"mode": "rw", "env": {"MOORAGE_A": "1"}, "uid": -5})]
    claim = with_configs(a_claim(a_reference(1)), *entries)

    said = of_claim(claim["spec"]["devices"]["config"]).problems

    assert len(said) == 3
    assert tuple(ClaimConfigs(claim).problems) == said
