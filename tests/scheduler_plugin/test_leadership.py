"""Who may write when: takeover stories, and any history of several plugins at one Lease."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kube.leases import Lease, Sighting
from kube.leases import see as see_lease
from kube.leases import view as view_lease
from scheduler_plugin.leadership import (
    NEVER,
    Holding,
    Leadership,
    Sight,
    caught_up,
    needs_holding,
    needs_to_catch_up,
    see,
    why_not,
)

LEASE = "moorage-system/moorage-scheduler"
DURATION = 15.0


def a_holding(holder: str, transitions: int = 0, acquired: float = -1000.0) -> Holding:
    return Holding(holder=holder, transitions=transitions, duration=DURATION, acquired=acquired)


def a_sight(holder: str, *, renewed: float, looked: float | None = None) -> Sight:
    """A look that showed a renewal which came between an earlier look and this one."""
    after = renewed if looked is None else looked
    return Sight(holder, after + DURATION, renewed + DURATION)


def why(leadership: Leadership, now: float, seconds: float = 2.0) -> str:
    return why_not(leadership, seconds, now, LEASE)


def seen(
    leadership: Leadership, sight: Sight, now: float, holding: Holding | None = None
) -> Leadership:
    assert needs_holding(leadership, sight, now) <= (holding is not None)
    return see(leadership, sight, now, holding)


def leading(now: float = 100.0, transitions: int = 0) -> Leadership:
    leadership = Leadership(identity="host-a")
    sight = a_sight("host-a_1", renewed=now)
    return caught_up(see(leadership, sight, now, a_holding("host-a_1", transitions)), now)


def led_by_another(renewed: float = 100.0) -> Leadership:
    leadership = Leadership(identity="host-a")
    sight = a_sight("host-b_1", renewed=renewed)
    return see(leadership, sight, renewed, a_holding("host-b_1", transitions=4))


def test_holder_is_known_by_its_host_and_not_by_a_part_of_its_name() -> None:
    leadership = Leadership(identity="host-a")

    assert leadership.is_ours("host-a_6bbb467a-f7be-4bd7-a4cd-1b105574b193")
    assert leadership.is_ours("host-a")
    assert not leadership.is_ours("host-ab_6bbb467a")
    assert not leadership.is_ours("host")
    assert not leadership.is_ours("")
    assert not Leadership(identity="").is_ours("")


def test_without_a_holder_the_sentence_says_that_leader_election_must_be_on() -> None:
    said = why(Leadership(identity="host-a"), now=0)

    assert LEASE in said
    assert "leader election" in said


def test_another_holder_is_named() -> None:
    said = why(led_by_another(), now=101)

    assert said == f'Lease {LEASE} is held by "host-b_1", not by "host-a" beside us.'


def test_first_holder_ever_is_served_once_the_stores_are_there() -> None:
    start = Leadership(identity="host-a")
    sight = Sight("host-a_1", NEVER, 115)
    found = seen(start, sight, 100, a_holding("host-a_1", transitions=0, acquired=99))

    assert needs_to_catch_up(found, 100)
    assert "not read yet" in why(found, 100)

    found = caught_up(found, found.others_over)
    assert "0.0 s for certain" in why(found, 100), "no renewal was seen yet"

    found = seen(found, a_sight("host-a_1", renewed=102), 102, a_holding("host-a_1", acquired=99))
    assert why(found, 102) == ""


def test_plugin_that_restarts_beside_a_leader_waits_for_nobody() -> None:
    start = Leadership(identity="host-a")
    held = a_holding("host-a_1", transitions=3, acquired=50)

    found = seen(start, Sight("host-a_1", NEVER, 115), 100, held)

    assert needs_to_catch_up(found, 100)


def test_plugin_that_starts_just_after_a_takeover_waits_for_the_remainder() -> None:
    start = Leadership(identity="host-a")
    held = a_holding("host-a_1", transitions=3, acquired=96)

    found = seen(start, Sight("host-a_1", NEVER, 115), 100, held)

    assert "may still write for 11.0 s" in why(found, 100)
    assert not needs_to_catch_up(found, 110.9)
    assert needs_to_catch_up(found, 111)


def test_clock_that_was_set_back_makes_nobody_wait_longer_than_a_duration() -> None:
    start = Leadership(identity="host-a")
    held = a_holding("host-a_1", transitions=3, acquired=5000)

    found = seen(start, Sight("host-a_1", NEVER, 115), 100, held)

    assert found.others_over == 100 + DURATION


def test_takeover_from_a_holder_that_died_waits_until_its_lease_is_over() -> None:
    """Its last renewal was seen at 100, and again and again nothing newer."""
    before = see(led_by_another(), a_sight("host-b_1", renewed=100), 114.5)

    found = seen(
        before, a_sight("host-a_1", renewed=115.2, looked=114.5), 115.2, a_holding("host-a_1", 5)
    )

    assert found.others_over == 115
    assert needs_to_catch_up(found, 115.2)
    assert why(caught_up(found, 115), 115.2) == ""


def test_takeover_from_a_holder_that_let_go_waits_for_a_whole_duration() -> None:
    """It may have renewed after the look at 101, and begun a write since."""
    found = seen(
        led_by_another(),
        a_sight("host-a_1", renewed=102, looked=101),
        102,
        a_holding("host-a_1", 5),
    )

    assert found.others_over == 102 + DURATION


def test_released_lease_does_not_shorten_the_wait() -> None:
    released = seen(led_by_another(), Sight(""), 102)
    found = seen(
        released, a_sight("host-a_1", renewed=103, looked=102), 103, a_holding("host-a_1", 5)
    )

    assert found.others_over == 102 + DURATION
    assert "may still write" in why(found, 103)


def test_what_was_read_before_the_others_time_was_over_is_not_enough() -> None:
    before = caught_up(led_by_another(), 100)
    found = seen(
        before, a_sight("host-a_1", renewed=102, looked=101), 102, a_holding("host-a_1", 5)
    )

    assert needs_to_catch_up(found, 117)
    assert "not read yet" in why(found, 117)
    assert not needs_to_catch_up(caught_up(found, 117), 117)


def test_kube_scheduler_that_restarts_beside_us_costs_no_wait() -> None:
    """Nobody else held the Lease in between, as its transitions show."""
    gone = seen(leading(transitions=2), Sight(""), 103)
    found = seen(gone, a_sight("host-a_2", renewed=105), 105, a_holding("host-a_2", 3, 105))

    assert why(found, 105) == ""


def test_holder_that_came_and_went_unseen_is_waited_for() -> None:
    """The API server could not be asked meanwhile; the transitions show it."""
    held = a_holding("host-a_2", transitions=4, acquired=198)
    found = seen(leading(transitions=2), a_sight("host-a_2", renewed=200), 200, held)

    assert found.others_over == 198 + DURATION


def test_write_that_may_outlive_the_lease_does_not_begin() -> None:
    found = leading(now=100)

    assert why(found, 112.9) == ""
    assert "ours for 2.0 s for certain: too short for 2 s" in why(found, 113)
    assert why(found, 114, seconds=0.5) == ""
    assert "ours for 0.0 s" in why(found, 500, seconds=0)


@dataclass
class Scheduler:
    """A kube-scheduler as client-go lets it behave, with the plugin beside it."""

    host: str
    starts: int = 0
    observed: tuple[Lease, float] | None = None
    renewed: float = NEVER
    sighting: Sighting | None = None
    leadership: Leadership = field(init=False)

    def __post_init__(self) -> None:
        self.restart_plugin()

    def restart_plugin(self) -> None:
        self.sighting, self.leadership = None, Leadership(identity=self.host)

    @property
    def identity(self) -> str:
        return f"{self.host}_{self.starts}"


hosts = st.sampled_from(["host-a", "host-b", "host-c"])
waits = st.sampled_from([0.25, 0.5, 1.0, 2.0, 2.0, 5.0, 9.0, 16.0])
WRITE_SECONDS = 2.0


class Elections(RuleBasedStateMachine):
    """Schedulers acquire, renew, release and die; plugins look late, or restart."""

    @initialize()
    def begin(self) -> None:
        self.now = 1000.0
        self.lease: Lease | None = None
        self.acquired = NEVER
        self.renewals = 0
        self.schedulers = {host: Scheduler(host) for host in ("host-a", "host-b", "host-c")}
        self.writes: dict[str, float] = {}
        self.last_write: tuple[str, float] | None = None

    @rule(seconds=waits)
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(host=hosts)
    def a_scheduler_tries(self, host: str) -> None:
        """client-go's tryAcquireOrRenew; a leader that failed for 10 s is one no longer."""
        one = self.schedulers[host]
        lease = self.lease
        if one.observed is None or one.observed[0] != lease:
            one.observed = (lease, self.now) if lease else None
        if lease and lease.holder == one.identity:
            if self.now - one.renewed < 10:
                self._write_lease(one, lease.transitions)
            else:
                one.starts += 1
        elif not lease or not lease.holder:
            self._acquire(one, lease.transitions + 1 if lease else 0)
        elif one.observed and self.now > one.observed[1] + lease.duration_seconds:
            self._acquire(one, lease.transitions + 1)

    def _acquire(self, one: Scheduler, transitions: int) -> None:
        self.acquired = self.now
        self._write_lease(one, transitions)

    def _write_lease(self, one: Scheduler, transitions: int) -> None:
        self.renewals += 1
        self.lease = Lease(
            holder=one.identity,
            duration_seconds=DURATION,
            renew_time=str(self.renewals),
            transitions=transitions,
        )
        one.renewed = self.now
        one.observed = (self.lease, self.now)

    @rule(host=hosts)
    def the_leader_lets_go(self, host: str) -> None:
        one = self.schedulers[host]
        if self.lease and self.lease.holder == one.identity:
            self.renewals += 1
            text = str(self.renewals)
            self.lease = replace(self.lease, holder="", duration_seconds=1, renew_time=text)
            one.starts += 1

    @rule(host=hosts)
    def a_scheduler_dies_and_starts_anew(self, host: str) -> None:
        self.schedulers[host].starts += 1

    @rule(host=hosts)
    def a_plugin_restarts(self, host: str) -> None:
        self.schedulers[host].restart_plugin()

    @rule(host=hosts)
    def a_plugin_looks(self, host: str) -> None:
        one = self.schedulers[host]
        if self.lease is None:
            one.sighting = None
            one.leadership = see(one.leadership, Sight(""), self.now)
            return
        one.sighting = see_lease(one.sighting, self.lease, asked_at=self.now, now=self.now)
        found = view_lease(one.sighting, now=self.now)
        until = self.now + found.at_least_seconds if found.at_least_seconds else NEVER
        sight = Sight(found.holder, until, self.now + found.at_most_seconds)
        holding = None
        if needs_holding(one.leadership, sight, self.now):
            holding = a_holding(self.lease.holder, self.lease.transitions, self.acquired)
        one.leadership = see(one.leadership, sight, self.now, holding)

    @rule(host=hosts)
    def a_plugin_catches_up(self, host: str) -> None:
        one = self.schedulers[host]
        if needs_to_catch_up(one.leadership, self.now):
            one.leadership = caught_up(one.leadership, self.now)

    @rule(host=hosts)
    def a_plugin_writes(self, host: str) -> None:
        """The write may arrive at any time until its limit."""
        one = self.schedulers[host]
        if why_not(one.leadership, WRITE_SECONDS, self.now, LEASE) == "":
            known_from = one.leadership.known_from
            assert known_from is not None
            if self.last_write and self.last_write[0] != host:
                assert known_from >= self.last_write[1], "what was written is not read"
            self.last_write = (host, self.now + WRITE_SECONDS)
            self.writes[host] = self.now + WRITE_SECONDS

    @rule(host=hosts, seconds=waits)
    def all_goes_well(self, host: str, seconds: float) -> None:
        """Most of the time each of them does its work every other second."""
        self.time_passes(min(seconds, 1.0))
        self.a_scheduler_tries(host)
        for other in self.schedulers:
            self.a_plugin_looks(other)
            self.a_plugin_catches_up(other)
        self.a_plugin_writes(host)

    @precondition(lambda self: self.writes)
    @invariant()
    def nobody_may_write_while_another_does(self) -> None:
        self.writes = {host: until for host, until in self.writes.items() if until > self.now}
        may = {
            host
            for host, one in self.schedulers.items()
            if why_not(one.leadership, 0.0, self.now, LEASE) == ""
        }

        assert len(may | set(self.writes)) <= 1, (may, self.writes)


TestElections = Elections.TestCase
TestElections.settings = settings(max_examples=300, stateful_step_count=80, deadline=None)
