"""A queue that a user names on a new claim or template."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from driver.api import Problem
from scheduler_plugin.api import NamespaceView
from tests.scheduler_plugin.builders import a_claim_object, a_queue
from tests.webhook.builders import LABEL_PATH, a_review, a_template_object, surroundings
from webhook.findings import NOTHING_FOUND, Findings
from webhook.rules.claims import judge_claim
from webhook.rules.surroundings import Surroundings

LAB = NamespaceView("lab", {"team": "lab"})


def claim_findings(queue: str | None, around: Surroundings) -> Findings:
    body: dict[str, Any] = a_claim_object()
    if queue is not None:
        body["metadata"]["labels"] = {"moorage.dev/queue": queue}
    return judge_claim(a_review("ResourceClaim", body), LAB, around)


def template_findings(queue: str | None, around: Surroundings) -> Findings:
    review = a_review("ResourceClaimTemplate", a_template_object(queue=queue))
    return judge_claim(review, LAB, around)


Judged = Callable[[str | None, Surroundings], Findings]
EACH = pytest.mark.parametrize(
    ("judged", "path"),
    [(claim_findings, LABEL_PATH), (template_findings, f"spec.{LABEL_PATH}")],
    ids=["claim", "template"],
)


@EACH
def test_without_a_label_nothing_is_asked(judged: Judged, path: str) -> None:
    assert judged(None, surroundings()) == NOTHING_FOUND


@EACH
def test_a_queue_that_exists_may_be_named(judged: Judged, path: str) -> None:
    assert judged("vision", surroundings(a_queue("vision"))) == NOTHING_FOUND


@EACH
def test_a_queue_that_does_not_exist_may_not(judged: Judged, path: str) -> None:
    found = judged("visoin", surroundings(a_queue("vision")))

    assert found.problems == (
        Problem(path, 'Queue "visoin" does not exist. Create it, or name another queue.'),
    )


@EACH
def test_an_empty_label_is_refused(judged: Judged, path: str) -> None:
    found = judged("", surroundings())

    assert found.problems == (
        Problem(path, "The label is empty. Name a queue, or remove the label."),
    )


@EACH
def test_the_queue_must_admit_the_namespace(judged: Judged, path: str) -> None:
    ours = a_queue("ours", namespaceSelector={"matchLabels": {"team": "lab"}})
    theirs = a_queue("theirs", namespaceSelector={"matchLabels": {"team": "shop"}})
    around = surroundings(ours, theirs)

    assert judged("ours", around) == NOTHING_FOUND
    (problem,) = judged("theirs", around).problems
    assert problem.path == path
    assert problem.message.startswith('Namespace "lab" may not use queue "theirs".')


@EACH
def test_no_namespace_may_name_a_queue_that_selects_none(judged: Judged, path: str) -> None:
    (problem,) = judged("shut", surroundings(a_queue("shut", namespaceSelector=None))).problems

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
    around = surroundings(
        a_queue("research", claimSharing={"labelAtCreate": "Deny"}),
        a_queue("vision", parent="research"),
        a_queue("open", parent="research", claimSharing={"labelAtCreate": "Allow"}),
    )

    assert judged("open", around) == NOTHING_FOUND
    for name in ("research", "vision"):
        (problem,) = judged(name, around).problems
        assert problem.path == path
        assert "labelAtCreate: Deny" in problem.message


@EACH
def test_all_that_is_wrong_is_said_at_once(judged: Judged, path: str) -> None:
    selector = {"matchLabels": {"team": "shop"}}
    closed = a_queue("closed", namespaceSelector=selector, claimSharing={"labelAtCreate": "Deny"})

    assert len(judged("closed", surroundings(closed)).problems) == 2


def test_the_label_of_a_template_itself_means_nothing() -> None:
    body = a_template_object()
    body["metadata"]["labels"] = {"moorage.dev/queue": "nobody"}

    assert judge_claim(a_review("ResourceClaimTemplate", body), LAB, surroundings()) == (
        NOTHING_FOUND
    )


def test_the_key_of_the_label_is_a_setting() -> None:
    around = surroundings(queue_label="kai.scheduler/queue")
    body = a_claim_object(queue="nobody")
    body["metadata"]["labels"]["kai.scheduler/queue"] = "nobody-either"

    (problem,) = judge_claim(a_review("ResourceClaim", body), LAB, around).problems

    assert problem == Problem(
        "metadata.labels[kai.scheduler/queue]",
        'Queue "nobody-either" does not exist. Create it, or name another queue.',
    )
