"""AdmissionReviews: what is read from them, and what goes back."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from driver.api import Problem
from tests.scheduler_plugin.builders import a_queue_object
from tests.webhook.builders import a_review
from webhook.findings import NOTHING_FOUND, Findings, listed
from webhook.reviews import AdmissionReview, Answer, answer, cannot_judge, failure

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def decoded(answered: Answer) -> Any:
    found = json.loads(answered.model_dump_json(by_alias=True, exclude_none=True))
    assert (found["apiVersion"], found["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    return found["response"]


def test_a_review_is_read() -> None:
    review = a_review("Queue", a_queue_object("vision"), a_queue_object("old"))

    assert (review.uid, review.operation) == ("uid-of-the-review", "UPDATE")
    assert (review.kind.group, review.kind.kind) == ("moorage.dev", "Queue")
    assert review.new == a_queue_object("vision")
    assert review.old == a_queue_object("old")
    assert review.user.groups == ("system:authenticated",)


def test_what_the_api_server_leaves_out_is_empty() -> None:
    body = json.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {"uid": "u", "kind": {"kind": "Pod"}, "operation": "CREATE", "later": 1},
        }
    )

    review = AdmissionReview.model_validate_json(body).request

    assert (review.name, review.namespace, review.new, review.old) == ("", "", None, None)


def test_an_object_without_problems_is_allowed() -> None:
    review = a_review("Queue", a_queue_object())

    assert decoded(answer(review, NOTHING_FOUND)) == {"uid": review.uid, "allowed": True}


def test_warnings_go_along_with_an_allowed_object() -> None:
    review = a_review("Queue", a_queue_object())

    response = decoded(answer(review, Findings(warnings=("odd", "x" * 300))))

    assert response["allowed"] is True
    assert response["warnings"] == ["odd", "x" * 253 + "..."]


def test_a_refusal_names_every_field() -> None:
    review = a_review("Queue", a_queue_object("vision"))
    problems = (Problem("spec.parent", "No."), Problem("spec.resources[0].quota", "Neither."))

    response = decoded(answer(review, Findings(problems)))

    assert response["allowed"] is False
    assert response["status"]["code"] == 422
    assert response["status"]["message"] == "spec.parent: No. spec.resources[0].quota: Neither."
    assert response["status"]["details"] == {
        "name": "vision",
        "group": "moorage.dev",
        "kind": "Queue",
        "causes": [
            {"reason": "FieldValueInvalid", "message": "No.", "field": "spec.parent"},
            {
                "reason": "FieldValueInvalid",
                "message": "Neither.",
                "field": "spec.resources[0].quota",
            },
        ],
    }


def test_what_cannot_be_judged_is_refused_with_its_uid() -> None:
    review = a_review("Deployment", {})

    response = decoded(cannot_judge(review, "No rule is about it."))

    assert (response["uid"], response["allowed"]) == (review.uid, False)
    assert response["status"]["message"] == "No rule is about it."


def test_a_failure_is_a_status_that_clients_show() -> None:
    assert failure(503, "Later.") == {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": 503,
        "message": "Later.",
    }


def test_of_many_names_the_first_are_told() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(map(str, range(8))) == "0, 1, 2, 3, 4 and 3 more"
