"""Leases, and how long they certainly have left."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kube.kinds import LEASES
from kube.leases import leases
from kube.leases.leases import LeaseView, Observation
from kube.shapes.leases import Lease, parse_lease


def a_lease(holder: str = "them", renewed: str = "t1") -> Lease:
    return Lease(holder=holder, duration_seconds=15, renew_time=renewed, acquire_time="t0")


def seen(*polls: tuple[Lease, float, float]) -> Observation:
    observation = None
    for lease, asked_at, now in polls:
        observation = leases.observe(observation, lease, asked_at=asked_at, now=now)
    assert observation
    return observation


def test_first_look_promises_nothing_for_the_holder() -> None:
    observation = seen((a_lease(), 100, 101))

    assert leases.view(observation, now=101) == LeaseView("them", 0, 15)


def test_renewal_lies_between_the_last_old_poll_and_the_first_new_answer() -> None:
    observation = seen(
        (a_lease(renewed="t1"), 100, 101),
        (a_lease(renewed="t1"), 102, 103),
        (a_lease(renewed="t2"), 104, 106),
    )

    assert leases.view(observation, now=110) == LeaseView("them", 102 + 15 - 110, 106 + 15 - 110)


def test_time_runs_out_when_the_lease_is_not_renewed() -> None:
    observation = seen((a_lease(renewed="t1"), 0, 0), (a_lease(renewed="t2"), 1, 1))

    assert leases.view(observation, now=14.5) == LeaseView("them", 0.5, 1.5)
    assert leases.view(observation, now=20) == LeaseView("them", 0, 0)


def test_released_lease_has_no_holder_and_no_time() -> None:
    lease = leases.released(a_lease(), datetime(2026, 1, 1, tzinfo=UTC))

    assert leases.view(seen((lease, 0, 0)), now=0) == LeaseView("", 0, 0)


@pytest.mark.parametrize(
    ("observation", "now", "written"),
    [
        (None, 0, (0, "now")),
        (seen((a_lease("them"), 0, 0)), 14.9, None),
        (seen((a_lease("them"), 0, 0)), 15, (1, "now")),
        (seen((a_lease(""), 0, 0)), 0, (1, "now")),
        (seen((a_lease("me"), 0, 0)), 5, (0, "t0")),
        (seen((a_lease("me"), 0, 0)), 50, (0, "t0")),
    ],
)
def test_candidate_takes_what_is_free_and_keeps_what_it_has(
    observation: Observation | None, now: float, written: tuple[int, str] | None
) -> None:
    ours = Lease(holder="me", duration_seconds=15, renew_time="now", acquire_time="now")

    found = leases.taken(observation, ours, now=now)

    assert (found and (found.transitions, found.acquire_time)) == written
    assert found is None or (found.holder, found.renew_time) == ("me", "now")


def test_lease_survives_the_way_to_the_server_and_back() -> None:
    lease = a_lease()

    body = leases.lease_body(LEASES.at("l", "ns"), lease)

    assert parse_lease(body) == lease


@pytest.mark.parametrize("spec", [None, {}, {"holderIdentity": None, "renewTime": None}])
def test_lease_without_a_spec_is_nobodys(spec: object) -> None:
    assert parse_lease({"spec": spec}) == Lease(holder="", duration_seconds=0)
