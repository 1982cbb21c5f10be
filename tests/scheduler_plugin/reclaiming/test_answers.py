"""Answers of CEL: shared by devices that look alike, bounded, and no device is refused unasked."""

from __future__ import annotations

from typing import Any

import pytest

from kube.shapes.selection import Toleration
from scheduler_plugin.objects.devices.selections import Selections, evaluable
from scheduler_plugin.reclaiming.placement.answers import Answers, Unanswered
from scheduler_plugin.reclaiming.placement.offers import DeviceCriteria, Offer
from scheduler_plugin.reclaiming.placement.published_slices import published_slice
from tests.scheduler_plugin.reclaiming.devices_builders import a_device, a_slice_object

CLASS, OWN, OTHER = ("device.driver == 'x'",), ("true", "1 == 1"), ("false",)
TAINT = {"key": "gone", "effect": "NoSchedule"}


def an_offer(name: str = "d", *, is_complete: bool = True, **fields: Any) -> Offer:
    found = {"metadata": {"name": "s"}, **a_slice_object(a_device(name, **fields))}
    (device,) = published_slice(found).devices
    return Offer(device, is_complete)


def a_request(*selectors: tuple[str | None, ...], **fields: Any) -> DeviceCriteria:
    values = {"slots": 1, "names_slots": False, "tolerations": (), **fields}
    return DeviceCriteria(selectors=selectors, **values)


PLAIN, FINE = an_offer("plain"), an_offer("fine", model="fine")
ALIKE = an_offer("other-name")


def answered(answers: Answers, criteria: DeviceCriteria, *offers: Offer, says: bool | None) -> None:
    missing = answers.missing(criteria, offers)
    assert missing is not None
    answers.put(missing, [says] * len(missing.offers))


@pytest.mark.parametrize(("says", "fits"), [(True, True), (None, True), (False, False)])
def test_a_device_fits_unless_an_answer_refuses_it(says: bool | None, fits: bool) -> None:
    answers, criteria = Answers(), a_request(OWN)
    assert answers.accepts(criteria, PLAIN)

    answered(answers, criteria, PLAIN, says=says)

    assert answers.accepts(criteria, PLAIN) is fits
    assert answers.answer(OWN, PLAIN) is says
    assert answers.missing(criteria, [PLAIN]) is None
    assert answers.accepts(criteria, FINE), "it is another one"


def test_devices_that_look_alike_share_an_answer() -> None:
    answers, criteria = Answers(), a_request(OWN)

    missing = answers.missing(criteria, [PLAIN, FINE, ALIKE])
    assert missing is not None
    answers.put(missing, [offer.digest != PLAIN.digest for offer in missing.offers])

    assert len(missing.offers) == len(answers) == 2
    assert [answers.accepts(criteria, each) for each in (PLAIN, ALIKE, FINE)] == [
        False,
        False,
        True,
    ]


def test_requests_share_what_their_class_says_and_not_what_they_say_themselves() -> None:
    answers, one, two = Answers(), a_request(CLASS, OWN), a_request(CLASS, OTHER)

    answered(answers, one, PLAIN, says=True)
    answered(answers, one, PLAIN, says=False)

    assert answers.missing(two, [PLAIN]) == Unanswered(OTHER, (PLAIN,))
    assert (answers.accepts(one, PLAIN), answers.accepts(two, PLAIN)) == (False, True)


def test_a_request_is_not_asked_about_what_its_class_refuses() -> None:
    answers, criteria = Answers(), a_request(CLASS, OWN)
    first = answers.missing(criteria, [PLAIN, FINE])
    assert first == Unanswered(CLASS, (PLAIN, FINE))

    answers.put(first, [False, True])

    assert answers.missing(criteria, [PLAIN, FINE]) == Unanswered(OWN, (FINE,))


def test_what_takes_too_long_counts_as_satisfied_and_is_missing_no_more() -> None:
    answers, criteria = Answers(), a_request(CLASS, OWN)

    answers.put_too_slow(CLASS)

    assert answers.is_too_slow(CLASS)
    assert not answers.is_too_slow(OWN)
    assert answers.accepts(criteria, PLAIN)
    assert answers.missing(criteria, [PLAIN]) == Unanswered(OWN, (PLAIN,))


def test_what_is_to_be_skipped_for_a_request_is_asked_for_another() -> None:
    answers, criteria = Answers(), a_request(CLASS, OWN)

    assert answers.missing(criteria, [PLAIN], {CLASS}) == Unanswered(OWN, (PLAIN,))
    assert answers.missing(criteria, [PLAIN], {CLASS, OWN}) is None
    assert answers.missing(criteria, [PLAIN]) == Unanswered(CLASS, (PLAIN,))


def test_what_is_no_cel_counts_as_satisfied() -> None:
    answers, criteria = Answers(), a_request((None, "true"), (), OWN)

    assert list(evaluable(criteria.selectors)) == [OWN]
    assert answers.accepts(criteria, PLAIN)


@pytest.mark.parametrize(
    ("offer", "fields"),
    [
        (an_offer(is_complete=False), {}),
        (an_offer(taints=[TAINT]), {}),
        (PLAIN, {"names_slots": True}),
    ],
)
def test_a_device_that_no_such_request_gets_is_refused_without_cel(
    offer: Offer, fields: Any
) -> None:
    answers, criteria = Answers(), a_request(OWN, **fields)

    assert not answers.accepts(criteria, offer)
    assert answers.missing(criteria, [offer]) is None


def test_a_taint_that_is_tolerated_keeps_no_device_away() -> None:
    tainted = an_offer(taints=[TAINT])

    tolerations = (Toleration(operator="Exists"),)

    assert Answers().accepts(a_request(OWN, tolerations=tolerations), tainted)


def many(count: int, first: int = 0) -> list[Offer]:
    return [an_offer(model=f"m{number}") for number in range(first, first + count)]


def test_answers_that_were_not_needed_for_longest_go_first() -> None:
    answers = Answers(Selections(most=10))
    requests = [a_request((text,)) for text in "abc"]
    for criteria in requests[:2]:
        answered(answers, criteria, *many(4), says=False)
    answers.missing(requests[0], many(1))

    answered(answers, requests[2], *many(4), says=False)

    kept = [[answers.accepts(each, offer) for offer in many(4)] for each in requests]
    assert kept == [[False] * 4, [True] * 4, [False] * 4]
    assert len(answers) == 8


def test_there_is_never_more_than_may_be_whoever_asks_for_it() -> None:
    answers = Answers(Selections(most=10))

    for number in range(100):
        answered(answers, a_request((f"{number}",)), *many(3), says=True)
        assert len(answers) <= 10
    answered(answers, a_request(("all",)), *many(11), says=True)
    assert len(answers) == 0
    answers.put_too_slow(("x" * 10_000,))
    assert not answers.is_too_slow(("x" * 10_000,)), "long texts take room, too"
    answered(answers, a_request(("some",)), *many(9), says=True)
    assert len(answers) == 9
