"""Which certificates the webhook should have, and whom the API server should trust.

All replicas share one Secret: the authorities that are trusted (`ca.crt`), the key of the newest
(`ca.key`), and the certificate that they serve (`tls.crt`, `tls.key`). The registrations repeat the
authorities as their `caBundle`. Each step writes one object, on the condition that nobody wrote it
since it was read; a replica that loses reads again. Nothing else is remembered, so that a replica
may be killed between any two steps, and the next one goes on from what is stored.

Theory. A certificate that is served must be verifiable by whoever calls:

* A new authority joins those that are trusted, and takes the place of the old key, while the old
  certificate is served on. Nobody can sign with the old key from then on.
* Only when every registration has repeated it for as long as API servers take to notice (`settle`),
  the first certificate that it signed is stored.
* Authorities outlive all that they signed, and are trusted until they expire. What a `caBundle`
  already trusts stays there as long, whatever the Secret says: that may have been lost meanwhile.

Registrations are read before the Secret. So whoever finds a `caBundle` that is newer than the
Secret that he read would also find that somebody wrote the registration since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import TypeAlias

LIVES_OF_AN_AUTHORITY = 4
"""In lives of a certificate; signing in the first two thirds, it outlives what it signs."""

RENEWED_AFTER = 2 / 3
MOST_JITTER = 0.05
"""Of a life: of replicas that look at the same moment, all but one would make keys for nothing."""

BACKDATED = timedelta(hours=1)
"""How far the clocks of replicas and API servers may be apart."""

SETTLE = timedelta(seconds=30)
"""By then the watches of all API servers have brought a registration."""

MOST_AUTHORITIES = 10
"""Each time that the Secret is lost one more is trusted; those that go have long been replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate, as far as it matters here.

    Attributes:
        identity: What no other certificate has.
        signed_by: Identity of the trusted authority that signed it; "" for none of them.
        names: DNS names and addresses that it is for.
        pem: What is stored of it.
    """

    identity: str
    signed_by: str = ""
    not_before: datetime
    not_after: datetime
    names: frozenset[str] = frozenset()
    pem: bytes = b""

    def is_valid(self, now: datetime) -> bool:
        return self.not_before <= now < self.not_after


@dataclass(frozen=True, slots=True)
class Policy:
    """What an administrator decided.

    Attributes:
        names: DNS names and addresses by which the webhook is called.
        life: Of a certificate that is served.
        jitter: In [0, 1), another one in every process.
    """

    names: frozenset[str]
    life: timedelta
    jitter: float = 0.0

    @property
    def backdated(self) -> timedelta:
        return min(BACKDATED, self.life)

    @property
    def settle(self) -> timedelta:
        return min(SETTLE, self.life / 1000)

    def is_due(self, certificate: Certificate, now: datetime) -> bool:
        """Whether it is time for the next one; who made it may have had a clock that was ahead."""
        life = certificate.not_after - certificate.not_before
        return now < certificate.not_before or now >= certificate.not_before + life * (
            RENEWED_AFTER + MOST_JITTER * self.jitter
        )

    def authority_span(self, now: datetime) -> tuple[datetime, datetime]:
        """First and last moment of a new authority."""
        return now - self.backdated, now + LIVES_OF_AN_AUTHORITY * self.life

    def span(self, signer: Certificate, now: datetime) -> tuple[datetime, datetime]:
        """First and last moment of a new certificate, within those of its authority."""
        first, last = now - self.backdated, now + self.life
        return max(first, signer.not_before), min(last, signer.not_after)


@dataclass(frozen=True, slots=True)
class OwnCa:
    """Where the webhook's CA is kept, and where it is announced.

    Attributes:
        registration: Name of the webhook configurations of both kinds.
    """

    namespace: str
    secret: str
    registration: str
    policy: Policy


@dataclass(frozen=True, slots=True)
class Kept:
    """What the Secret holds, as far as it is of use.

    Attributes:
        trusted: Authorities, the oldest first.
        signer: The one of them whose key is there; None for none.
        served: The certificate, if its key is there and one of the authorities signed it.
    """

    trusted: tuple[Certificate, ...] = ()
    signer: Certificate | None = None
    served: Certificate | None = None


@dataclass(frozen=True, slots=True)
class Registered:
    """A webhook configuration: the authorities in each `caBundle` of it."""

    name: str
    bundles: tuple[tuple[Certificate, ...], ...]

    def trusts(self, identity: str) -> bool:
        return all(any(one.identity == identity for one in bundle) for bundle in self.bundles)


@dataclass(frozen=True, slots=True)
class Announced:
    """Authorities that every registration trusts, each with the time when this was first seen.

    The times are those of a clock that never jumps, in seconds.
    """

    since: frozenset[tuple[str, float]] = frozenset()

    def for_seconds(self, identity: str, seconds: float, clock: float) -> bool:
        return any(one == identity and clock - since >= seconds for one, since in self.since)


@dataclass(frozen=True, slots=True)
class MakeAuthority:
    """Store a new authority and its key, beside those that stay trusted."""

    trusted: tuple[Certificate, ...]


@dataclass(frozen=True, slots=True)
class Forget:
    """Store no other authorities than these."""

    trusted: tuple[Certificate, ...]


@dataclass(frozen=True, slots=True)
class Announce:
    """Make each `caBundle` of these registrations what `wanted_bundle` says."""

    registrations: tuple[str, ...]
    trusted: tuple[Certificate, ...]


@dataclass(frozen=True, slots=True)
class Sign:
    """Store a new certificate for these names, signed by this authority."""

    signer: Certificate
    names: frozenset[str]


Step: TypeAlias = MakeAuthority | Forget | Announce | Sign


@dataclass(frozen=True, slots=True)
class Seen:
    """All that a step is decided by: the Secret, what is registered, and for how long.

    Attributes:
        clock: The time of `announced`, which is not that of the certificates.
    """

    kept: Kept
    registered: tuple[Registered, ...]
    announced: Announced
    clock: float


def observe(
    before: Announced,
    registered: Sequence[Registered],
    trusted: Sequence[Certificate],
    clock: float,
) -> Announced:
    """Remember since when each authority is announced; what is taken back starts anew."""
    known = dict(before.since)
    announced = (one.identity for one in trusted if all(r.trusts(one.identity) for r in registered))
    return Announced(frozenset((identity, known.get(identity, clock)) for identity in announced))


def next_step(seen: Seen, policy: Policy, now: datetime) -> Step | None:
    """The next object to write; None while there is nothing to do but wait."""
    kept = seen.kept
    trusted = _still_trusted(kept.trusted, policy, now)
    if kept.signer is None or kept.signer not in trusted or policy.is_due(kept.signer, now):
        return MakeAuthority(_inherited(seen, trusted, policy, now))
    if trusted != kept.trusted:
        return Forget(trusted)
    if lacking := _lacking(seen.registered, trusted, policy, now):
        return Announce(lacking, trusted)
    names = _names_to_sign(kept, policy, now)
    if names and _may_sign(seen, kept.signer, policy, now):
        return Sign(kept.signer, names)
    return None


def may_serve(
    offered: Certificate, shown: Certificate | None, seen: Seen, policy: Policy, now: datetime
) -> bool:
    """Whether whoever calls can verify it; one that is in use is better than one that is not sure.

    What is stored was announced before, unless somebody else wrote the Secret.
    """
    is_in_use = shown is not None and shown.is_valid(now)
    seconds = policy.settle.total_seconds() if is_in_use else 0.0
    return seen.announced.for_seconds(offered.signed_by, seconds, seen.clock)


def wanted_bundle(
    bundle: tuple[Certificate, ...],
    trusted: tuple[Certificate, ...],
    policy: Policy,
    now: datetime,
) -> tuple[Certificate, ...]:
    """What a `caBundle` should be: those who are trusted, after those who were."""
    others = [one for one in _still_trusted(bundle, policy, now) if one not in trusted]
    kept = _oldest_first(others, MOST_AUTHORITIES - len(trusted))
    return (*kept, *trusted)


def _still_trusted(
    trusted: Iterable[Certificate], policy: Policy, now: datetime
) -> tuple[Certificate, ...]:
    """Expired ones are kept for as long as another clock may find them valid."""
    return tuple(one for one in trusted if now < one.not_after + policy.backdated)


def _inherited(
    seen: Seen, trusted: tuple[Certificate, ...], policy: Policy, now: datetime
) -> tuple[Certificate, ...]:
    """Who stays trusted beside a new authority.

    Where the Secret was lost, the registrations still say by whom the certificates are signed that
    other replicas serve.
    """
    if seen.kept.signer is None:
        found = chain.from_iterable(chain.from_iterable(r.bundles for r in seen.registered))
        trusted = _still_trusted([*found, *trusted], policy, now)
    return _oldest_first(trusted, MOST_AUTHORITIES - 1)


def _oldest_first(found: Iterable[Certificate], most: int) -> tuple[Certificate, ...]:
    """Each once, and the newest of them if there are too many."""
    unique = {one.identity: one for one in found}
    ordered = sorted(unique.values(), key=lambda one: (one.not_before, one.identity))
    return tuple(ordered[max(0, len(ordered) - most) :])


def _lacking(
    registered: Iterable[Registered],
    trusted: tuple[Certificate, ...],
    policy: Policy,
    now: datetime,
) -> tuple[str, ...]:
    return tuple(
        one.name
        for one in registered
        if any(wanted_bundle(bundle, trusted, policy, now) != bundle for bundle in one.bundles)
    )


def _names_to_sign(kept: Kept, policy: Policy, now: datetime) -> frozenset[str]:
    """The names of the certificate that should follow; none while the one that is there will do.

    Names that another replica asked for stay until the next renewal: two that are told different
    ones, as during an update, would sign in turns for ever.
    """
    served, signer = kept.served, kept.signer
    if served is None or signer is None or policy.is_due(served, now):
        return policy.names
    if policy.names <= served.names and served.signed_by == signer.identity:
        return frozenset()
    return policy.names | served.names


def _may_sign(seen: Seen, signer: Certificate, policy: Policy, now: datetime) -> bool:
    """Nobody waits for an authority that is in use, or while nothing in use can be verified."""
    served = seen.kept.served
    if served is None:
        is_free = len(seen.kept.trusted) == 1
    else:
        is_free = served.signed_by == signer.identity or not served.is_valid(now)
    seconds = 0.0 if is_free else policy.settle.total_seconds()
    return seen.announced.for_seconds(signer.identity, seconds, seen.clock)
