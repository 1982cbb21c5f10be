"""What becomes of the Secret and the registrations: by example."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from webhook.certificates import (
    Announce,
    Announced,
    Certificate,
    Forget,
    Kept,
    MakeAuthority,
    Policy,
    Registered,
    Seen,
    Sign,
    may_serve,
    next_step,
    observe,
)

NOW = datetime(2026, 11, 21, tzinfo=UTC)
DAY = timedelta(days=1)
NAMES = frozenset({"moorage-webhook.moorage-system.svc"})
POLICY = Policy(NAMES, 90 * DAY)
SETTLE = POLICY.settle.total_seconds()


def authority(identity: str, made: datetime = NOW) -> Certificate:
    first, last = POLICY.authority_span(made)
    return Certificate(identity=identity, not_before=first, not_after=last)


def certificate(
    signer: Certificate, made: datetime = NOW, names: frozenset[str] = NAMES
) -> Certificate:
    first, last = POLICY.span(signer, made)
    return Certificate(
        identity=f"{signer.identity}-{made:%j}",
        signed_by=signer.identity,
        not_before=first,
        not_after=last,
        names=names,
    )


OLD = authority("old", NOW - 200 * DAY)
NEW = authority("new")


def seen(
    kept: Kept, *bundles: tuple[Certificate, ...], since: float = 0.0, clock: float = SETTLE
) -> Seen:
    registered = tuple(Registered(f"kind-{n}", (bundle,)) for n, bundle in enumerate(bundles))
    announced = observe(Announced(), registered, kept.trusted, since)
    return Seen(kept, registered, announced, clock)


def test_where_nothing_is_there_an_authority_is_made() -> None:
    assert next_step(seen(Kept()), POLICY, NOW) == MakeAuthority(())


def test_where_nobody_is_registered_the_first_certificate_follows_at_once() -> None:
    found = seen(Kept((NEW,), NEW), clock=0.0)

    assert next_step(found, POLICY, NOW) == Sign(NEW, NAMES)


def test_who_is_registered_is_told_first() -> None:
    kept = Kept((NEW,), NEW)

    step = next_step(seen(kept, (), (NEW,)), POLICY, NOW)

    assert step == Announce(("kind-0",), (NEW,))
    assert next_step(seen(kept, (NEW,), (NEW,), clock=0.0), POLICY, NOW) == Sign(NEW, NAMES)


def test_nothing_is_to_do() -> None:
    found = seen(Kept((NEW,), NEW, certificate(NEW)), (NEW,))

    assert next_step(found, POLICY, NOW + 60 * DAY - timedelta(hours=1)) is None


@pytest.mark.parametrize(("jitter", "days"), [(0.0, 61), (0.99, 65)])
def test_a_certificate_is_renewed_after_two_thirds_of_its_life(jitter: float, days: int) -> None:
    found = seen(Kept((NEW,), NEW, certificate(NEW)), (NEW,))
    policy = Policy(NAMES, 90 * DAY, jitter)

    assert next_step(found, policy, NOW + days * DAY) == Sign(NEW, NAMES)
    assert next_step(found, policy, NOW + (days - 2) * DAY) is None


def test_an_authority_is_followed_while_its_certificate_is_served_on() -> None:
    kept = Kept((OLD,), OLD, certificate(OLD))
    found = seen(kept, (OLD,))

    assert next_step(found, POLICY, NOW) is None
    assert next_step(found, POLICY, NOW + 41 * DAY) == MakeAuthority((OLD,))


def test_the_first_certificate_of_a_new_authority_waits_until_it_is_known_everywhere() -> None:
    kept = Kept((OLD, NEW), NEW, certificate(OLD))

    assert next_step(seen(kept, (OLD,)), POLICY, NOW) == Announce(("kind-0",), (OLD, NEW))
    assert next_step(seen(kept, (OLD, NEW), clock=SETTLE - 1), POLICY, NOW) is None
    assert next_step(seen(kept, (OLD, NEW)), POLICY, NOW) == Sign(NEW, NAMES)


def test_nobody_waits_for_a_certificate_that_has_expired() -> None:
    expired = certificate(OLD, NOW - 91 * DAY)
    kept = Kept((OLD, NEW), NEW, expired)

    assert next_step(seen(kept, (OLD, NEW), clock=0.0), POLICY, NOW) == Sign(NEW, NAMES)


def test_what_was_made_by_a_clock_that_was_ahead_is_followed_at_once() -> None:
    """Nobody could verify it for as long as the clock was ahead."""
    ahead = authority("ahead", NOW + 300 * DAY)
    kept = Kept((ahead,), ahead, certificate(ahead, NOW + 300 * DAY))
    assert next_step(seen(kept, (ahead,)), POLICY, NOW) == MakeAuthority((ahead,))

    followed = seen(Kept((ahead, NEW), NEW, kept.served), (ahead, NEW), clock=0.0)
    assert next_step(followed, POLICY, NOW) == Sign(NEW, NAMES)
    signed = seen(Kept((ahead, NEW), NEW, certificate(NEW)), (ahead, NEW), clock=0.0)
    assert may_serve(certificate(NEW), kept.served, signed, POLICY, NOW)
    assert next_step(signed, POLICY, NOW) is None
    # The clock that was ahead finds nothing to do either, unless it was so by very much.
    assert next_step(signed, POLICY, NOW + 50 * DAY) is None


def test_an_authority_is_trusted_until_it_has_expired_by_any_clock() -> None:
    kept = Kept((OLD, NEW), NEW, certificate(NEW, OLD.not_after))
    found = seen(kept, (OLD, NEW))

    assert next_step(found, POLICY, OLD.not_after + timedelta(minutes=59)) is None
    assert next_step(found, POLICY, OLD.not_after + timedelta(hours=1)) == Forget((NEW,))
    forgotten = seen(Kept((NEW,), NEW, kept.served), (OLD, NEW))
    step = next_step(forgotten, POLICY, OLD.not_after + timedelta(hours=1))
    assert step == Announce(("kind-0",), (NEW,))


def test_where_the_secret_was_lost_those_who_are_registered_know_whom_others_are_signed_by() -> (
    None
):
    gone = authority("gone", NOW - 400 * DAY)

    step = next_step(seen(Kept(), (gone, OLD), ()), POLICY, NOW)

    assert step == MakeAuthority((OLD,))
    # The certificates that others serve are not known: its own waits.
    waiting = seen(Kept((OLD, NEW), NEW), (OLD, NEW), (OLD, NEW), clock=SETTLE - 1)
    assert next_step(waiting, POLICY, NOW) is None


def test_a_key_that_is_lost_takes_its_certificate_with_it_only_in_the_end() -> None:
    kept = Kept((OLD,), None, certificate(OLD))

    assert next_step(seen(kept, (OLD,)), POLICY, NOW) == MakeAuthority((OLD,))


def test_losing_the_secret_again_and_again_does_not_add_up() -> None:
    many = tuple(authority(f"{n:02}", NOW - n * DAY) for n in range(30))

    step = next_step(seen(Kept(), many), POLICY, NOW)

    assert isinstance(step, MakeAuthority)
    assert [one.identity for one in step.trusted] == [f"{n:02}" for n in range(8, -1, -1)]


def test_names_are_added_at_once_and_dropped_at_the_next_renewal() -> None:
    other = frozenset({"other.example"})
    kept = Kept((NEW,), NEW, certificate(NEW, names=other))

    assert next_step(seen(kept, (NEW,)), POLICY, NOW) == Sign(NEW, NAMES | other)
    both = Kept((NEW,), NEW, certificate(NEW, names=NAMES | other))
    assert next_step(seen(both, (NEW,)), POLICY, NOW) is None
    assert next_step(seen(both, (NEW,)), POLICY, NOW + 70 * DAY) == Sign(NEW, NAMES)


def test_a_certificate_ends_with_its_authority_at_the_latest() -> None:
    assert POLICY.span(OLD, OLD.not_after - DAY)[1] == OLD.not_after


def test_what_others_stored_is_not_served_before_it_can_be_verified() -> None:
    shown, offered = certificate(OLD), certificate(NEW)
    kept = Kept((OLD, NEW), NEW, offered)
    unknown = seen(kept, (OLD,))
    fresh = seen(kept, (OLD, NEW), clock=SETTLE - 1)

    assert not may_serve(offered, None, unknown, POLICY, NOW)
    assert not may_serve(offered, shown, fresh, POLICY, NOW)
    assert may_serve(offered, None, fresh, POLICY, NOW)
    assert may_serve(offered, shown, seen(kept, (OLD, NEW)), POLICY, NOW)
    assert may_serve(offered, certificate(OLD, NOW - 91 * DAY), fresh, POLICY, NOW)


def test_what_is_taken_back_is_announced_anew() -> None:
    told = (Registered("kind", ((OLD, NEW),)),)
    untold = (Registered("kind", ((OLD, NEW), (OLD,))),)

    first = observe(Announced(), told, (OLD, NEW), 1.0)
    again = observe(observe(first, untold, (OLD, NEW), 2.0), told, (OLD, NEW), 3.0)

    assert dict(first.since) == {"old": 1.0, "new": 1.0}
    assert dict(again.since) == {"old": 1.0, "new": 3.0}
