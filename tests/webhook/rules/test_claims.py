"""A queue that a user names on a new claim or template."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from driver.api import Problem
from scheduler_plugin.objects.api import NamespaceView
from tests.scheduler_plugin.builders import a_claim_object, a_queue
from tests.webhook.builders import LABEL_PATH, a_review, a_template_object, rule_context
from webhook.findings import NOTHING_FOUND, Findings
from webhook.rules.claims import judge_claim
from webhook.rules.rule_context import RuleContext

LAB = NamespaceView("lab", {"team": "lab"})


def claim_findings(queue: str | None, context: RuleContext) -> Findings:
    body: dict[str, Any] = a_claim_object()
    if queue is not None:
        body["metadata"]["labels"] = {"moorage.dev/queue": queue}
    return judge_claim(a_review("ResourceClaim", body), LAB, context)


def template_findings(queue: str | None, context: RuleContext) -> Findings:
    review = a_review("ResourceClaimTemplate", a_template_object(queue=queue))
    return judge_claim(review, LAB, context)


Judged = Callable[[str | None, RuleContext], Findings]
EACH = pytest.mark.parametrize(
    ("judged", "path"),
    [(claim_findings, LABEL_PATH), (template_findings, f"spec.{LABEL_PATH}")],
    ids=["claim", "template"],
)


@EACH
def test_without_a_label_nothing_is_asked(judged: Judged, path: str) -> None:
    assert judged(None, rule_context()) == NOTHING_FOUND


@EACH
def test_a_queue_that_exists_may_be_named(judged: Judged, path: str) -> None:
    assert judged("vision", rule_context(a_queue("vision"))) == NOTHING_FOUND


@EACH
def test_a_queue_that_does_not_exist_may_not(judged: Judged, path: str) -> None:
    found = judged("visoin", rule_context(a_queue("vision")))

    assert found.problems == (
        Problem(path, 'Queue "visoin" does not exist. Create it, or name another queue.'),
    )


@EACH
def test_an_empty_label_is_refused(judged: Judged, path: str) -> None:
    found = judged("", rule_context())

    assert found.problems == (
        Problem(path, "The label is empty. Name a queue, or remove the label."),
    )


@EACH
def test_the_queue_must_admit_the_namespace(judged: Judged, path: str) -> None:
    ours = a_queue("ours", namespaceSelector={"matchLabels": {"team": "lab"}})
    theirs = a_queue("theirs", namespaceSelector={"matchLabels": {"team": "shop"}})
    context = rule_context(ours, theirs)

    assert judged("ours", context) == NOTHING_FOUND
    (problem,) = judged("theirs", context).problems
    assert problem.path == path
    assert problem.message.startswith('Namespace "lab" may not use queue "theirs".')


@EACH
def test_no_namespace_may_name_a_queue_that_selects_none(judged: Judged, path: str) -> None:
    (problem,) = judged("shut", rule_context(a_queue("shut", namespaceSelector=None))).problems

    assert problem == Problem(
        path,
        'Namespace "lab" may not use queue "shut". It has no spec.namespaceSelector, so no'
        " namespace may use it. spec.namespaceSelector: {} allows all namespaces,"
        " spec.namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: lab}} allows this"
        " one.",
    )


@EACH
def test_a_queue_that_denies_labels_denies_them_for_its_descendants(
    judged: Judged, path: str
) -> None:
    context = rule_context(
        a_queue("research", claimSharing={"labelAtCreate": "Deny"}),
        a_queue("vision", parent="research"),
        a_queue("open", parent="research", claimSharing={"labelAtCreate": "Allow"}),
    )

    assert judged("open", context) == NOTHING_FOUND
    for name in ("research", "vision"):
        (problem,) = judged(name, context).problems
        assert problem.path == path
        assert "labelAtCreate: Deny" in problem.message


@EACH
def test_all_that_is_wrong_is_said_at_once(judged: Judged, path: str) -> None:
    selector = {"matchLabels": {"team": "shop"}}
    closed = a_queue("closed", namespaceSelector=selector, claimSharing={"labelAtCreate": "Deny"})

    assert len(judged("closed", rule_context(closed)).problems) == 2


def test_the_label_of_a_template_itself_means_nothing() -> None:
    body = a_template_object()
    body["metadata"]["labels"] = {"moorage.dev/queue": "nobody"}

    assert judge_claim(a_review("ResourceClaimTemplate", body), LAB, rule_context()) == (
        NOTHING_FOUND
    )


def test_the_key_of_the_label_is_a_setting() -> None:
    context = rule_context(queue_label="kai.scheduler/queue")
    body = a_claim_object(queue="nobody")
    body["metadata"]["labels"]["kai.scheduler/queue"] = "nobody-either"

    (problem,) = judge_claim(a_review("ResourceClaim", body), LAB, context).problems

    assert problem == Problem(
        "metadata.labels[kai.scheduler/queue]",
        'Queue "nobody-either" does not exist. Create it, or name another queue.',
    )
