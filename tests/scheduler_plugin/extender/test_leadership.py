"""Who may write when: takeover stories, and any history of several plugins at one Lease."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kube.leases.leases import Observation
from kube.leases.leases import observe as see_lease
from kube.leases.leases import view as view_lease
from kube.shapes.leases import Lease
from scheduler_plugin.extender.leadership import (
    NEVER,
    Leadership,
    LeaseObservation,
    LeaseRecord,
    caught_up,
    needs_record,
    needs_to_catch_up,
    see,
    why_not,
)

LEASE = "moorage-system/moorage-scheduler"
DURATION = 15.0


def a_record(holder: str, transitions: int = 0, acquired: float = -1000.0) -> LeaseRecord:
    return LeaseRecord(holder=holder, transitions=transitions, duration=DURATION, acquired=acquired)


def an_observation(holder: str, *, renewed: float, looked: float | None = None) -> LeaseObservation:
    """A look that showed a renewal which came between an earlier look and this one."""
    after = renewed if looked is None else looked
    return LeaseObservation(holder, after + DURATION, renewed + DURATION)


def why(leadership: Leadership, now: float, seconds: float = 2.0) -> str:
    return why_not(leadership, seconds, now, LEASE)


def seen(
    leadership: Leadership,
    observation: LeaseObservation,
    now: float,
    record: LeaseRecord | None = None,
) -> Leadership:
    assert needs_record(leadership, observation, now) <= (record is not None)
    return see(leadership, observation, now, record)


def leading(now: float = 100.0, transitions: int = 0) -> Leadership:
    leadership = Leadership(identity="host-a")
    observation = an_observation("host-a_1", renewed=now)
    return caught_up(see(leadership, observation, now, a_record("host-a_1", transitions)), now)


def led_by_another(renewed: float = 100.0) -> Leadership:
    leadership = Leadership(identity="host-a")
    observation = an_observation("host-b_1", renewed=renewed)
    return see(leadership, observation, renewed, a_record("host-b_1", transitions=4))


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

    assert said == f'"host-b_1" holds Lease {LEASE}; "host-a" beside this process does not.'


def test_first_holder_ever_is_served_once_the_stores_are_there() -> None:
    start = Leadership(identity="host-a")
    observation = LeaseObservation("host-a_1", NEVER, 115)
    found = seen(start, observation, 100, a_record("host-a_1", transitions=0, acquired=99))

    assert needs_to_catch_up(found, 100)
    assert "not read yet" in why(found, 100)

    found = caught_up(found, found.others_over)
    assert "certainly held for 0.0 s" in why(found, 100), "no renewal was seen yet"

    found = seen(
        found, an_observation("host-a_1", renewed=102), 102, a_record("host-a_1", acquired=99)
    )
    assert why(found, 102) == ""


def test_plugin_that_restarts_beside_a_leader_waits_for_nobody() -> None:
    start = Leadership(identity="host-a")
    held = a_record("host-a_1", transitions=3, acquired=50)

    found = seen(start, LeaseObservation("host-a_1", NEVER, 115), 100, held)

    assert needs_to_catch_up(found, 100)


def test_plugin_that_starts_just_after_a_takeover_waits_for_the_remainder() -> None:
    start = Leadership(identity="host-a")
    held = a_record("host-a_1", transitions=3, acquired=96)

    found = seen(start, LeaseObservation("host-a_1", NEVER, 115), 100, held)

    assert "may still write for 11.0 s" in why(found, 100)
    assert not needs_to_catch_up(found, 110.9)
    assert needs_to_catch_up(found, 111)


def test_clock_that_was_set_back_makes_nobody_wait_longer_than_a_duration() -> None:
    start = Leadership(identity="host-a")
    held = a_record("host-a_1", transitions=3, acquired=5000)

    found = seen(start, LeaseObservation("host-a_1", NEVER, 115), 100, held)

    assert found.others_over == 100 + DURATION


def test_takeover_from_a_holder_that_died_waits_until_its_lease_is_over() -> None:
    """Its last renewal was seen at 100, and again and again nothing newer."""
    before = see(led_by_another(), an_observation("host-b_1", renewed=100), 114.5)

    found = seen(
        before,
        an_observation("host-a_1", renewed=115.2, looked=114.5),
        115.2,
        a_record("host-a_1", 5),
    )

    assert found.others_over == 115
    assert needs_to_catch_up(found, 115.2)
    assert why(caught_up(found, 115), 115.2) == ""


def test_takeover_from_a_holder_that_let_go_waits_for_a_whole_duration() -> None:
    """It may have renewed after the look at 101, and begun a write since."""
    found = seen(
        led_by_another(),
        an_observation("host-a_1", renewed=102, looked=101),
        102,
        a_record("host-a_1", 5),
    )

    assert found.others_over == 102 + DURATION


def test_released_lease_does_not_shorten_the_wait() -> None:
    released = seen(led_by_another(), LeaseObservation(""), 102)
    found = seen(
        released, an_observation("host-a_1", renewed=103, looked=102), 103, a_record("host-a_1", 5)
    )

    assert found.others_over == 102 + DURATION
    assert "may still write" in why(found, 103)


def test_what_was_read_before_the_others_time_was_over_is_not_enough() -> None:
    before = caught_up(led_by_another(), 100)
    found = seen(
        before, an_observation("host-a_1", renewed=102, looked=101), 102, a_record("host-a_1", 5)
    )

    assert needs_to_catch_up(found, 117)
    assert "not read yet" in why(found, 117)
    assert not needs_to_catch_up(caught_up(found, 117), 117)


def test_kube_scheduler_that_restarts_beside_us_costs_no_wait() -> None:
    """Nobody else held the Lease in between, as its transitions show."""
    gone = seen(leading(transitions=2), LeaseObservation(""), 103)
    found = seen(gone, an_observation("host-a_2", renewed=105), 105, a_record("host-a_2", 3, 105))

    assert why(found, 105) == ""


def test_holder_that_came_and_went_unseen_is_waited_for() -> None:
    """The API server could not be asked meanwhile; the transitions show it."""
    held = a_record("host-a_2", transitions=4, acquired=198)
    found = seen(leading(transitions=2), an_observation("host-a_2", renewed=200), 200, held)

    assert found.others_over == 198 + DURATION


def test_write_that_may_outlive_the_lease_does_not_begin() -> None:
    found = leading(now=100)

    assert why(found, 112.9) == ""
    assert "certainly held for 2.0 s: this is too short for a write of 2 s" in why(found, 113)
    assert why(found, 114, seconds=0.5) == ""
    assert "certainly held for 0.0 s" in why(found, 500, seconds=0)


TICK = 0.5
WRITE_SECONDS = 2.0


@dataclass
class Host:
    """A kube-scheduler as client-go lets it behave, and the plugin beside it."""

    name: str
    starts: int = 0
    observed: tuple[Lease, float] | None = None
    renewed: float = NEVER
    observation: Observation | None = None
    stuck: dict[str, float] = field(default_factory=dict)
    writes_until: float = NEVER
    leadership: Leadership = field(init=False)

    def __post_init__(self) -> None:
        self.restart_plugin()

    def restart_plugin(self) -> None:
        self.observation, self.leadership = None, Leadership(identity=self.name)

    @property
    def identity(self) -> str:
        return f"{self.name}_{self.starts}"


@dataclass
class Story:
    """What goes wrong on a host at a moment, and for how long."""

    at: float
    host: str
    what: str
    seconds: float


class Election:
    """Hosts at one Lease. Half a second is the smallest step."""

    def __init__(self, stories: list[Story]) -> None:
        self.now = 0.0
        self.lease: Lease | None = None
        self.acquired = 0.0
        self.writes_to_the_lease = 0
        self.hosts = {name: Host(name) for name in ("host-a", "host-b", "host-c")}
        self.stories = stories
        self.last_write: tuple[str, float] | None = None
        self.writers: list[str] = []

    def run(self, seconds: float) -> None:
        while self.now < seconds:
            self.now += TICK
            for story in self.stories:
                if self.now - TICK < story.at <= self.now:
                    self.begin(self.hosts[story.host], story)
            for number, host in enumerate(self.hosts.values()):
                self.step(host, number)

    def begin(self, host: Host, story: Story) -> None:
        match story.what:
            case "scheduler stuck" | "plugin stuck" | "stores stuck":
                host.stuck[story.what.split()[0]] = story.at + story.seconds
            case "plugin restarts":
                host.restart_plugin()
            case "scheduler dies":
                host.starts += 1
                host.stuck["scheduler"] = story.at + story.seconds
            case "scheduler lets go":
                self.let_go(host)
                host.stuck["scheduler"] = story.at + story.seconds
            case _:
                raise AssertionError(story)

    def step(self, host: Host, number: int) -> None:
        tick = round(self.now / TICK)
        if (tick + number) % 4 == 0 and self.is_free(host, "scheduler"):
            self.try_to_lead(host)
        if tick % 2 == 0 and self.is_free(host, "plugin"):
            self.look(host)
        if needs_to_catch_up(host.leadership, self.now) and self.is_free(host, "stores"):
            host.leadership = caught_up(host.leadership, self.now)
        if why_not(host.leadership, WRITE_SECONDS, self.now, LEASE) == "":
            self.write(host)

    def is_free(self, host: Host, part: str) -> bool:
        return host.stuck.get(part, NEVER) <= self.now

    def try_to_lead(self, host: Host) -> None:
        """client-go's tryAcquireOrRenew; a leader that failed for 10 s is one no longer."""
        lease = self.lease
        if lease is None or not lease.holder:
            self.acquire(host, lease.transitions + 1 if lease else 0)
            return
        if host.observed is None or host.observed[0] != lease:
            host.observed = (lease, self.now)
        if lease.holder == host.identity and self.now - host.renewed < 10:
            self.write_lease(host, lease.transitions)
        elif lease.holder == host.identity:
            self.let_go(host)
        elif self.now > host.observed[1] + lease.duration_seconds:
            self.acquire(host, lease.transitions + 1)

    def acquire(self, host: Host, transitions: int) -> None:
        self.acquired = self.now
        self.write_lease(host, transitions)

    def write_lease(self, host: Host, transitions: int) -> None:
        self.lease = Lease(
            holder=host.identity,
            duration_seconds=DURATION,
            renew_time=self.stamp(),
            transitions=transitions,
        )
        host.renewed = self.now
        host.observed = (self.lease, self.now)

    def let_go(self, host: Host) -> None:
        if self.lease and self.lease.holder == host.identity:
            stamp = self.stamp()
            self.lease = replace(self.lease, holder="", duration_seconds=1, renew_time=stamp)
        host.starts += 1

    def stamp(self) -> str:
        self.writes_to_the_lease += 1
        return str(self.writes_to_the_lease)

    def look(self, host: Host) -> None:
        if self.lease is None:
            return
        host.observation = see_lease(host.observation, self.lease, asked_at=self.now, now=self.now)
        view = view_lease(host.observation, now=self.now)
        until = self.now + view.at_least_seconds if view.at_least_seconds else NEVER
        observation = LeaseObservation(view.holder, until, self.now + view.at_most_seconds)
        record = None
        if needs_record(host.leadership, observation, self.now):
            record = a_record(self.lease.holder, self.lease.transitions, self.acquired)
        host.leadership = see(host.leadership, observation, self.now, record)

    def write(self, host: Host) -> None:
        """Begin a write, which may arrive until its time is over."""
        for other in self.hosts.values():
            assert other is host or other.writes_until <= self.now, f"{other} may be writing"
        if self.last_write and self.last_write[0] != host.name:
            known_from = host.leadership.known_from
            assert known_from is not None
            assert known_from >= self.last_write[1], "what another wrote is not read"
        host.writes_until = self.now + WRITE_SECONDS
        self.last_write = (host.name, host.writes_until)
        if self.writers[-1:] != [host.name]:
            self.writers.append(host.name)


moments = st.integers(0, 200).map(lambda n: n * TICK)
stories = st.builds(
    Story,
    at=moments,
    host=st.sampled_from(["host-a", "host-b", "host-c"]),
    what=st.sampled_from(
        [
            "scheduler lets go",
            "scheduler dies",
            "scheduler stuck",
            "plugin stuck",
            "plugin restarts",
            "stores stuck",
        ]
    ),
    seconds=st.sampled_from([1.0, 3.0, 6.0, 12.0, 20.0, 60.0]),
)


RENEWED_UNSEEN = [
    Story(31, "host-a", "plugin stuck", 12),
    Story(31, "host-b", "plugin stuck", 12),
    Story(42, "host-c", "plugin stuck", 20),
    Story(42, "host-c", "scheduler lets go", 60),
]


@settings(max_examples=400)
@given(st.lists(stories, max_size=14))
@example(RENEWED_UNSEEN)
def test_no_two_write_at_a_time_and_each_has_read_what_the_one_before_wrote(
    told: list[Story],
) -> None:
    Election(told).run(140)


def test_after_a_leader_died_the_next_writes_soon() -> None:
    """Fifteen seconds of the Lease, two of kube-scheduler's period, and a renewal to be seen."""
    election = Election([Story(30, "host-c", "scheduler dies", 1000)])
    election.run(30)
    assert election.writers == ["host-c"]

    election.run(30 + 21)
    assert len(election.writers) == 2


def test_after_a_leader_let_go_the_next_writes_when_its_time_is_over() -> None:
    election = Election([Story(30, "host-c", "scheduler lets go", 1000)])
    election.run(30 + 14)
    assert election.writers == ["host-c"]

    election.run(30 + 19)
    assert len(election.writers) == 2
