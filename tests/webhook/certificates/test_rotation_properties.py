"""No certificate is served that callers cannot verify, however replicas and mishaps interleave.

Replicas read and write one object at a time; between any two of these another one may write, a
replica may be killed, or time may pass. Their clocks differ by up to a minute.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from webhook.certificates.authority import Pair, is_signed_by
from webhook.certificates.rotation import (
    Bundle,
    CaState,
    OwnCa,
    WriteBundles,
    may_serve,
    next_step,
    wanted_bundle,
)

OWN = OwnCa("", "", "", frozenset({"webhook.example"}), timedelta(days=90))
KINDS = ("validating", "mutating")
REPLICAS = 3


@dataclass
class Registration:
    """A registration of the world, and since when each authority is in its bundle.

    is_known: somebody of ours wrote the bundle; until then calls fail whatever is served.
    """

    version: int
    bundle: Bundle = ()
    since: dict[x509.Certificate, datetime] = field(default_factory=dict)
    is_known: bool = False


@dataclass
class World:
    """What the API server stores, and the true time."""

    now: datetime = datetime(2026, 11, 21, tzinfo=UTC)
    version: int = 0
    secret: tuple[int, CaState] | None = None
    registrations: dict[str, Registration] = field(default_factory=dict)
    signed: dict[x509.Certificate, x509.Certificate] = field(default_factory=dict)
    """Each certificate that was ever stored, and who signed it."""

    def next_version(self) -> int:
        self.version += 1
        return self.version

    def write_secret(self, read: tuple[int, CaState] | None, state: CaState) -> None:
        if self.secret != read:
            return
        self.secret = (self.next_version(), state)
        if state.served and state.served.certificate not in self.signed:
            assert state.signer is not None
            self.signed[state.served.certificate] = state.signer.certificate

    def write_bundle(self, kind: str, version: int, trusted: Bundle) -> None:
        found = self.registrations.get(kind)
        if found is None or found.version != version:
            return
        removed = set(found.bundle) - set(trusted)
        assert not (found.is_known and removed & self.in_use()), f"{kind}: not verified any more"
        since = {one: found.since.get(one, self.now) for one in trusted}
        self.registrations[kind] = Registration(self.next_version(), trusted, since, is_known=True)

    def in_use(self) -> set[x509.Certificate]:
        """Who signed a certificate that is good."""
        return {signer for one, signer in self.signed.items() if is_good(one, self.now)}


def is_good(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


class Replica:
    """The shell of a replica: one object read or written for each `next` of `look`."""

    def __init__(self, world: World, skew: timedelta) -> None:
        self.world = world
        self.skew = skew
        self.shown: Pair | None = None
        self.bundles: tuple[Bundle, ...] = ()
        self.since = world.now
        self.looking = self.look()

    @property
    def now(self) -> datetime:
        return self.world.now + self.skew

    def advance(self) -> None:
        """Do the next thing."""
        try:
            next(self.looking)
        except StopIteration:
            self.looking = self.look()

    def look(self) -> Generator[None]:
        secret = self.world.secret
        yield
        registrations = {}
        for kind in KINDS:
            if kind in self.world.registrations:
                registrations[kind] = self.world.registrations[kind]
            yield
        state, now = secret[1] if secret else CaState(), self.now
        bundles = tuple(one.bundle for one in registrations.values())
        self._serve(state, bundles)
        step = next_step(OWN, state, bundles, now, settled=self._settled(bundles))
        yield
        match step:
            case CaState():
                self.world.write_secret(secret, step)
            case WriteBundles(trusted):
                for kind, read in registrations.items():
                    wanted = wanted_bundle(read.bundle, trusted, now)
                    self.world.write_bundle(kind, read.version, wanted)
                    yield
            case None:
                pass

    def _settled(self, bundles: tuple[Bundle, ...]) -> bool:
        if bundles != self.bundles:
            self.bundles, self.since = bundles, self.world.now
        return self.world.now - self.since >= OWN.settle

    def _serve(self, state: CaState, bundles: tuple[Bundle, ...]) -> None:
        if state.served != self.shown and may_serve(state, bundles):
            assert state.served is not None
            self._check_others_know(self.world.signed[state.served.certificate])
            self.shown = state.served

    def _check_others_know(self, signer: x509.Certificate) -> None:
        """While a certificate of an earlier authority is good, who calls may lag behind."""
        world = self.world
        for kind, found in world.registrations.items():
            since = found.since.get(signer)
            earlier = [found.since[one] for one in world.in_use() if one in found.since]
            if found.is_known and since is not None and min(earlier) < since:
                assert world.now - since >= OWN.settle, (kind, signer)


class Rotations(RuleBasedStateMachine):
    """Three replicas, and all that may befall them."""

    @initialize(
        skews=st.lists(
            st.integers(-30, 30).map(lambda n: timedelta(seconds=n)),
            min_size=REPLICAS,
            max_size=REPLICAS,
        ),
        registered=st.booleans(),
    )
    def start(self, skews: list[timedelta], registered: bool) -> None:
        self.world = World()
        self.losses = 0
        self.replicas = [Replica(self.world, skew) for skew in skews]
        if registered:
            for kind in KINDS:
                self.world.registrations[kind] = Registration(self.world.next_version())
            self._settle(rounds=40)

    @rule(number=st.integers(0, REPLICAS - 1), times=st.integers(1, 25))
    def a_replica_goes_on(self, number: int, times: int) -> None:
        for _ in range(times):
            self.replicas[number].advance()

    @rule(number=st.integers(0, REPLICAS - 1))
    def a_replica_is_killed_and_another_one_started(self, number: int) -> None:
        self.replicas[number] = Replica(self.world, self.replicas[number].skew)

    @rule(seconds=st.integers(1, 40))
    def a_moment_passes(self, seconds: int) -> None:
        self.world.now += timedelta(seconds=seconds)

    @rule(days=st.integers(1, 200))
    def days_pass(self, days: int) -> None:
        """Replicas look all the time; one in the middle of a look stays there a while."""
        for _ in range(0, days, 10):
            self.world.now += timedelta(days=10)
            self._settle(rounds=24)

    @precondition(lambda self: self._is_calm())
    @rule(kind=st.sampled_from(KINDS))
    def somebody_registers_it_or_registers_it_anew(self, kind: str) -> None:
        """Without a bundle: calls fail until one of ours has written it."""
        self.world.registrations[kind] = Registration(self.world.next_version())

    @rule(kind=st.sampled_from(KINDS))
    def somebody_takes_a_registration_away(self, kind: str) -> None:
        self.world.registrations.pop(kind, None)

    @precondition(lambda self: self._is_calm() and self.losses < 4)
    @rule(leaves_something=st.booleans())
    def the_secret_is_lost(self, leaves_something: bool) -> None:
        self.losses += 1
        self.world.secret = (self.world.next_version(), CaState()) if leaves_something else None

    @invariant()
    def what_is_served_can_be_verified(self) -> None:
        for replica in self.replicas:
            shown = replica.shown
            if shown is None or not is_good(shown.certificate, self.world.now):
                continue
            for kind, found in self.world.registrations.items():
                trusts = any(is_signed_by(shown.certificate, one) for one in found.bundle)
                assert not found.is_known or trusts, (kind, shown)

    def teardown(self) -> None:
        """Left alone, all replicas come to show a good certificate of the newest authority."""
        if not hasattr(self, "world"):
            return
        for _ in range(4):
            self._settle(rounds=60)
            self.world.now += OWN.settle
        assert self.world.secret is not None
        state = self.world.secret[1]
        assert state.served is not None
        assert state.signer is not None
        assert is_signed_by(state.served.certificate, state.signer.certificate)
        assert is_good(state.served.certificate, self.world.now)
        assert {replica.shown for replica in self.replicas} == {state.served}
        for found in self.world.registrations.values():
            assert set(state.trusted) <= set(found.bundle)
            assert len(found.bundle) <= 10

    def _settle(self, rounds: int) -> None:
        for _ in range(rounds):
            for replica in self.replicas:
                replica.advance()

    def _is_calm(self) -> bool:
        """Nothing is lost, and nobody has yet to write or to take what is stored.

        Two mishaps at once can lose an authority for good: then calls are refused for a moment.
        """
        state = self.world.secret[1] if self.world.secret else CaState()
        known = all(found.is_known for found in self.world.registrations.values())
        shown = [self.world.signed[r.shown.certificate] for r in self.replicas if r.shown]
        return known and state.signer is not None and set(shown) <= set(state.trusted)


TestRotations = Rotations.TestCase
TestRotations.settings = settings(
    max_examples=20,
    stateful_step_count=30,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
)
