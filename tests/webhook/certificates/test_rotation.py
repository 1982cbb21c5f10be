"""What becomes of the Secret and the registrations: by example."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from webhook.certificates.authority import (
    Pair,
    is_signed_by,
    names_of,
    new_authority,
    new_certificate,
)
from webhook.certificates.rotation import (
    Bundle,
    CaState,
    OwnCa,
    WriteBundles,
    may_serve,
    next_step,
    wanted_bundle,
)

NOW = datetime(2026, 11, 21, tzinfo=UTC)
DAY = timedelta(days=1)
NAMES = frozenset({"moorage-webhook.moorage-system.svc"})
OWN = OwnCa("moorage-system", "moorage-webhook-tls", "moorage", NAMES, 90 * DAY)

OLD = new_authority(OWN.life, NOW - 200 * DAY)
NEW = new_authority(OWN.life, NOW)
AHEAD = new_authority(OWN.life, NOW + 300 * DAY)


def signed(signer: Pair, made: datetime = NOW, names: Iterable[str] = NAMES) -> Pair:
    return new_certificate(signer, names, OWN.life, made)


def state(*authorities: Pair, served: Pair | None = None) -> CaState:
    """The newest has its key."""
    return CaState(bundle(*authorities), authorities[-1], served)


def bundle(*authorities: Pair) -> Bundle:
    return tuple(one.certificate for one in authorities)


def step(
    found: CaState, *bundles: Bundle, now: datetime = NOW, settled: bool = True
) -> CaState | WriteBundles | None:
    return next_step(OWN, found, bundles, now, settled=settled)


def stored(found: CaState | WriteBundles | None) -> CaState:
    assert isinstance(found, CaState)
    return found


def is_for(
    found: CaState | WriteBundles | None, signer: Pair, names: frozenset[str] = NAMES
) -> bool:
    """Whether a new certificate of this authority is to be stored, and nothing else."""
    made = stored(found)
    assert made.signer == signer
    assert made.served is not None
    return is_signed_by(made.served.certificate, signer.certificate) and names == names_of(
        made.served.certificate
    )


def test_where_nothing_is_there_an_authority_is_made() -> None:
    made = stored(step(CaState()))

    assert made.signer is not None
    assert made.trusted == (made.signer.certificate,)
    assert made.served is None


@pytest.mark.parametrize("settled", [True, False])
def test_the_first_certificate_follows_at_once(settled: bool) -> None:
    assert is_for(step(state(NEW), settled=settled), NEW)
    assert is_for(step(state(NEW), bundle(NEW), settled=settled), NEW)


def test_while_another_authority_is_trusted_the_first_certificate_waits() -> None:
    """Who lost the Secret read an older registration, perhaps, than the one that stands there."""
    assert step(state(NEW), bundle(OLD, NEW), settled=False) is None
    assert is_for(step(state(NEW), bundle(OLD, NEW)), NEW)


def test_who_is_registered_is_told_first() -> None:
    assert step(state(NEW), (), bundle(NEW)) == WriteBundles(bundle(NEW))


def test_nothing_is_to_do() -> None:
    found = state(NEW, served=signed(NEW))

    assert step(found, bundle(NEW), now=NOW + 59 * DAY) is None


def test_a_certificate_is_renewed_after_two_thirds_of_its_life() -> None:
    found = state(NEW, served=signed(NEW))

    assert is_for(step(found, bundle(NEW), now=NOW + 60 * DAY, settled=False), NEW)


def test_an_authority_is_followed_while_its_certificate_is_served_on() -> None:
    served = signed(OLD)
    found = state(OLD, served=served)

    assert step(found, bundle(OLD)) is None
    made = stored(step(found, bundle(OLD), now=NOW + 41 * DAY))
    assert made.served == served
    assert made.signer is not None
    assert made.trusted == (OLD.certificate, made.signer.certificate)
    assert made.signer != OLD


def test_the_first_certificate_of_a_new_authority_waits_until_it_is_known_everywhere() -> None:
    found = state(OLD, NEW, served=signed(OLD))

    assert step(found, bundle(OLD)) == WriteBundles(bundle(OLD, NEW))
    assert step(found, bundle(OLD, NEW), settled=False) is None
    assert is_for(step(found, bundle(OLD, NEW)), NEW)


def test_nobody_waits_for_a_certificate_that_has_expired() -> None:
    found = state(OLD, NEW, served=signed(OLD, NOW - 91 * DAY))

    assert is_for(step(found, bundle(OLD, NEW), settled=False), NEW)


def test_what_was_made_by_a_clock_that_was_ahead_is_followed_at_once() -> None:
    """Nobody could verify it for as long as the clock was ahead."""
    served = signed(AHEAD, NOW + 300 * DAY)
    made = stored(step(state(AHEAD, served=served), bundle(AHEAD)))
    assert made.trusted[0] == AHEAD.certificate
    assert made.signer is not None

    assert is_for(step(made, made.trusted, settled=False), made.signer)
    followed = stored(step(made, made.trusted, settled=False))
    assert step(followed, made.trusted) is None
    # The clock that was ahead finds nothing to do either, unless it was so by very much.
    assert step(followed, made.trusted, now=NOW + 50 * DAY) is None


def test_an_authority_is_trusted_until_it_has_expired_by_any_clock() -> None:
    expired = OLD.certificate.not_valid_after_utc
    own = bundle(NEW)

    before = wanted_bundle(bundle(OLD), own, expired + timedelta(minutes=59))
    assert before == bundle(OLD, NEW)
    assert wanted_bundle(bundle(OLD), own, expired + timedelta(hours=1)) == own


def test_where_the_secret_was_lost_those_who_are_registered_know_whom_others_are_signed_by() -> (
    None
):
    gone = new_authority(OWN.life, NOW - 400 * DAY)

    made = stored(step(CaState(), bundle(gone, OLD), ()))

    assert made.trusted[:-1] == bundle(OLD)
    # The certificates that others serve are not known: its own waits.
    waiting = state(OLD, NEW)
    assert step(waiting, bundle(OLD, NEW), bundle(OLD, NEW), settled=False) is None


def test_a_key_that_is_lost_takes_its_certificate_with_it_only_in_the_end() -> None:
    served = signed(OLD)

    made = stored(step(CaState(bundle(OLD), None, served), bundle(OLD)))

    assert made.trusted[0] == OLD.certificate
    assert made.served == served


def test_losing_the_secret_again_and_again_does_not_add_up() -> None:
    many = [new_authority(OWN.life, NOW - n * DAY) for n in range(30)]

    made = stored(step(CaState(), bundle(*many)))

    assert made.trusted[:-1] == bundle(*reversed(many[:9]))
    assert wanted_bundle(bundle(*many), made.trusted, NOW) == made.trusted


def test_names_are_added_at_once_and_dropped_at_the_next_renewal() -> None:
    other = frozenset({"other.example"})
    found = state(NEW, served=signed(NEW, names=other))

    assert is_for(step(found, bundle(NEW)), NEW, NAMES | other)
    both = state(NEW, served=signed(NEW, names=NAMES | other))
    assert step(both, bundle(NEW)) is None
    assert is_for(step(both, bundle(NEW), now=NOW + 70 * DAY), NEW)


def test_what_is_stored_is_not_served_before_it_can_be_verified() -> None:
    found = state(OLD, NEW, served=signed(NEW))

    assert not may_serve(found, (bundle(OLD),))
    assert not may_serve(found, (bundle(OLD, NEW), ()))
    assert may_serve(found, (bundle(OLD, NEW), bundle(NEW)))
    assert may_serve(found, ()), "nobody calls who is not registered"
    assert not may_serve(replace(found, served=None), (bundle(NEW),))
