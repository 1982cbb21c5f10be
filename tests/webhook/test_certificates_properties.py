"""No certificate is served that callers cannot verify, however replicas and mishaps interleave.

Replicas read and write one object at a time; between any two of these another one may write, a
replica may be killed, or time may pass. Their clocks differ by up to a minute.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

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
    Step,
    may_serve,
    next_step,
    observe,
    wanted_bundle,
)

POLICY = Policy(frozenset({"webhook.example"}), timedelta(days=90))
SETTLE = POLICY.settle
KINDS = ("validating", "mutating")
REPLICAS = 3


@dataclass
class Registration:
    """A registration of the world, and since when each authority is in its bundle.

    is_known: somebody of ours wrote the bundle; until then calls fail whatever is served.
    """

    version: int
    bundle: tuple[Certificate, ...] = ()
    since: dict[str, datetime] = field(default_factory=dict)
    is_known: bool = False

    def trusts(self, identity: str) -> bool:
        return any(one.identity == identity for one in self.bundle)


@dataclass
class World:
    """What the API server stores, and the true time."""

    now: datetime = datetime(2026, 11, 21, tzinfo=UTC)
    version: int = 0
    secret: tuple[int, Kept] | None = None
    registrations: dict[str, Registration] = field(default_factory=dict)
    signed: list[Certificate] = field(default_factory=list)

    def next_version(self) -> int:
        self.version += 1
        return self.version

    def authority(self, now: datetime) -> Certificate:
        first, last = POLICY.authority_span(now)
        return Certificate(
            identity=f"authority-{self.next_version()}", not_before=first, not_after=last
        )

    def certificate(self, step: Sign, now: datetime) -> Certificate:
        first, last = POLICY.span(step.signer, now)
        made = Certificate(
            identity=f"certificate-{self.next_version()}",
            signed_by=step.signer.identity,
            not_before=first,
            not_after=last,
            names=step.names,
        )
        self.signed.append(made)
        return made

    def write_secret(self, read: tuple[int, Kept] | None, kept: Kept) -> None:
        if self.secret == read:
            self.secret = (self.next_version(), kept)

    def write_bundle(self, kind: str, version: int, trusted: tuple[Certificate, ...]) -> None:
        found = self.registrations.get(kind)
        if found is None or found.version != version:
            return
        removed = {one.identity for one in found.bundle} - {one.identity for one in trusted}
        in_use = [one for one in self.signed if one.signed_by in removed and one.is_valid(self.now)]
        assert not (found.is_known and in_use), f"{kind}: {in_use} cannot be verified any more"
        since = {one.identity: found.since.get(one.identity, self.now) for one in trusted}
        self.registrations[kind] = Registration(self.next_version(), trusted, since, is_known=True)


class Replica:
    """The shell of a replica: one object read or written for each `next` of `look`."""

    def __init__(self, world: World, skew: timedelta, jitter: float) -> None:
        self.world = world
        self.skew = skew
        self.policy = replace(POLICY, jitter=jitter)
        self.shown: Certificate | None = None
        self.announced = Announced()
        self.looking = self.look()

    @property
    def now(self) -> datetime:
        return self.world.now + self.skew

    def advance(self) -> bool:
        """Do the next thing; False where a look found nothing to write."""
        try:
            next(self.looking)
        except StopIteration as end:
            self.looking = self.look()
            return bool(end.value)
        return True

    def look(self) -> Generator[None, None, bool]:
        registrations = {}
        for kind in KINDS:
            if kind in self.world.registrations:
                registrations[kind] = self.world.registrations[kind]
            yield
        secret = self.world.secret
        seen = self._seen(registrations, secret[1] if secret else Kept())
        self._serve(seen)
        now = self.now
        step = next_step(seen, self.policy, now)
        yield
        if step is None:
            return False
        yield from self._take(step, registrations, secret, now)
        return True

    def _seen(self, registrations: dict[str, Registration], kept: Kept) -> Seen:
        clock = self.world.now.timestamp()
        registered = tuple(Registered(kind, (one.bundle,)) for kind, one in registrations.items())
        self.announced = observe(self.announced, registered, kept.trusted, clock)
        return Seen(kept, registered, self.announced, clock)

    def _serve(self, seen: Seen) -> None:
        offered = seen.kept.served
        if offered is None or offered == self.shown:
            return
        if may_serve(offered, self.shown, seen, self.policy, self.now):
            self._check_others_know(offered)
            self.shown = offered

    def _check_others_know(self, offered: Certificate) -> None:
        """While a certificate of an earlier authority is good, who calls may lag behind."""
        world = self.world
        good = {one.signed_by for one in world.signed if one.is_valid(world.now)}
        for kind, found in world.registrations.items():
            since = found.since.get(offered.signed_by)
            earlier = [found.since[one] for one in good if one in found.since]
            if found.is_known and since is not None and min(earlier) < since:
                assert world.now - since >= SETTLE, (kind, offered)

    def _take(
        self,
        step: Step,
        registrations: dict[str, Registration],
        secret: tuple[int, Kept] | None,
        now: datetime,
    ) -> Iterator[None]:
        world, kept = self.world, secret[1] if secret else Kept()
        match step:
            case MakeAuthority(trusted):
                new = world.authority(now)
                everybody = (*trusted, new)
                world.write_secret(secret, Kept(everybody, new, _still_signed(kept, everybody)))
            case Forget(trusted):
                served = _still_signed(kept, trusted)
                world.write_secret(secret, Kept(trusted, kept.signer, served))
            case Sign():
                made = world.certificate(step, now)
                world.write_secret(secret, replace(kept, served=made))
            case Announce(kinds, trusted):
                for kind in kinds:
                    read = registrations[kind]
                    wanted = wanted_bundle(read.bundle, trusted, self.policy, now)
                    world.write_bundle(kind, read.version, wanted)
                    yield
        yield


def _still_signed(kept: Kept, trusted: tuple[Certificate, ...]) -> Certificate | None:
    """What `authority.read` makes of it: a certificate of nobody who is trusted is of no use."""
    served = kept.served
    known = {one.identity for one in trusted}
    return served if served and served.signed_by in known else None


class Rotations(RuleBasedStateMachine):
    """Three replicas, and all that may befall them."""

    @initialize(
        skews=st.lists(
            st.integers(-30, 30).map(lambda n: timedelta(seconds=n)),
            min_size=REPLICAS,
            max_size=REPLICAS,
        ),
        jitters=st.lists(st.floats(0, 0.99), min_size=REPLICAS, max_size=REPLICAS),
        registered=st.booleans(),
    )
    def start(self, skews: list[timedelta], jitters: list[float], registered: bool) -> None:
        self.world = World()
        self.losses = 0
        self.replicas = [
            Replica(self.world, skew, jitter) for skew, jitter in zip(skews, jitters, strict=True)
        ]
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
        old = self.replicas[number]
        self.replicas[number] = Replica(self.world, old.skew, old.policy.jitter)

    @rule(seconds=st.integers(1, 40))
    def a_moment_passes(self, seconds: int) -> None:
        self.world.now += timedelta(seconds=seconds)

    @rule(days=st.integers(1, 200))
    def days_pass(self, days: int) -> None:
        """Replicas look all the time; whoever is in the middle of a look stays there for a day."""
        for _ in range(days):
            self.world.now += timedelta(days=1)
            self._settle(rounds=2)

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
        self.world.secret = (self.world.next_version(), Kept()) if leaves_something else None

    @invariant()
    def what_is_served_can_be_verified(self) -> None:
        for replica in self.replicas:
            shown = replica.shown
            if shown is None or not shown.is_valid(self.world.now):
                continue
            for kind, found in self.world.registrations.items():
                assert not found.is_known or found.trusts(shown.signed_by), (kind, shown)

    def teardown(self) -> None:
        """Left alone, all replicas come to show a good certificate of the newest authority."""
        if not hasattr(self, "world"):
            return
        for _ in range(4):
            self._settle(rounds=60)
            self.world.now += SETTLE
        assert self.world.secret is not None
        kept = self.world.secret[1]
        assert kept.served is not None
        assert kept.signer is not None
        assert kept.served.signed_by == kept.signer.identity
        assert kept.served.is_valid(self.world.now)
        assert {replica.shown for replica in self.replicas} == {kept.served}
        for found in self.world.registrations.values():
            assert set(kept.trusted) <= set(found.bundle)
            assert len(found.bundle) <= 10
            assert all(one.is_valid(self.world.now - POLICY.backdated) for one in found.bundle)

    def _settle(self, rounds: int) -> None:
        for _ in range(rounds):
            for replica in self.replicas:
                replica.advance()

    def _is_calm(self) -> bool:
        """Nothing is lost, and nobody has yet to write or to take what is stored.

        Two mishaps at once can lose an authority for good: then calls are refused for a moment.
        """
        kept = self.world.secret[1] if self.world.secret else Kept()
        trusted = {one.identity for one in kept.trusted}
        known = all(found.is_known for found in self.world.registrations.values())
        shown = [replica.shown for replica in self.replicas if replica.shown]
        return known and kept.signer is not None and all(one.signed_by in trusted for one in shown)


TestRotations = Rotations.TestCase
TestRotations.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
)
