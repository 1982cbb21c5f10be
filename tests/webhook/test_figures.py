"""What the webhook tells of the reviews that it answers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from driver.api import Problem
from webhook import prometheus, reviews
from webhook.findings import Findings
from webhook.prometheus import Answered
from webhook.reviews import Edit, Review


def told() -> dict[str, float]:
    return {
        f"{sample.name}{{{','.join(v for _, v in sorted(sample.labels.items()))}}}": sample.value
        for family in text_string_to_metric_families(prometheus.page().decode())
        for sample in family.samples
    }


def a_review(kind: str = "Queue") -> Review:
    found: dict[str, Any] = {"uid": "1", "kind": {"kind": kind}, "operation": "CREATE"}
    return Review.model_validate(found)


def test_reviews_are_counted_by_how_they_were_answered() -> None:
    before, review = told(), a_review()
    problems = (Problem("spec.resources[3].limit", "No."), Problem("spec.parent", "No."))
    with Answered("validate", review) as answered:
        answered.by(reviews.answer(review, Findings(problems)))
    with Answered("validate", review) as answered:
        answered.by(reviews.answer(review, Findings()))
    with Answered("mutate", review) as answered:
        answered.by(reviews.edited(review, [Edit("spec.x", 1)]))
    with suppress(KeyError), Answered("validate", a_review("Secret")):
        raise KeyError
    after = told()

    def more(name: str) -> float:
        return after[f"moorage_webhook_{name}"] - before.get(f"moorage_webhook_{name}", 0)

    for name in (
        "reviews_total{Queue,validate,refused}",
        "reviews_total{Queue,validate,allowed}",
        "reviews_total{Queue,mutate,changed}",
        "reviews_total{other,validate,failed}",
        "refusals_total{Queue,spec.resources[].limit}",
        "refusals_total{Queue,spec.parent}",
        "review_duration_seconds_count{mutate}",
    ):
        assert more(name) == 1
    assert more("review_duration_seconds_count{validate}") == 3


def test_names_that_users_choose_are_no_endless_labels() -> None:
    rules = {prometheus.rule(f"spec.field{number}") for number in range(500)}

    assert prometheus.OTHER in rules
    assert len(rules) <= prometheus.MOST_RULES + 1
    assert prometheus.rule("metadata.labels[anything]") in ("metadata.labels[]", prometheus.OTHER)
