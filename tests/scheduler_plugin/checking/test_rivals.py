"""Another kube-scheduler of the same name, as its Events and its Lease tell of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from kube.calls.api import ApiClient, ApiError, ForbiddenError, NotFoundError
from kube.calls.apiserver_reads import Page
from kube.resources import ObjectPath, Selection
from kube.shapes.events import Event
from kube.shapes.reading import read_as
from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.checking.apiserver_rivals import read_rivals
from scheduler_plugin.checking.findings import findings_of, is_whole
from scheduler_plugin.checking.rivals import (
    MOST_DECISIONS,
    MOST_HOSTS,
    decided_pod,
    deciding,
    is_of_another,
    rival_leases,
)
from scheduler_plugin.checking.setups import DecidedPod, Level, Setup, Unread
from scheduler_plugin.objects.names import QUEUE_ANNOTATION
from scheduler_plugin.settings import CheckSettings
from tests.scheduler_plugin.checking.test_findings import NOW, PODS, SYSTEM, bad, whole

OWN_POD = "moorage-scheduler-0"
RIVAL = ("kube-system", "kube-scheduler-moorage")


def stamp(ago: timedelta) -> str:
    return (NOW - ago).isoformat().replace("+00:00", "Z")


def election(namespace: str, name: str, host: str = "vm") -> Any:
    """As kube-scheduler's older recorder writes it: no instance, and times of the old kind."""
    return {
        "reason": "LeaderElection",
        "note": f"{host}_0f1e became leader",
        "reportingController": "moorage",
        "reportingInstance": "",
        "regarding": {"kind": "Lease", "namespace": namespace, "name": name},
        "deprecatedLastTimestamp": stamp(timedelta(minutes=50)),
    }


def decision(host: str, reason: str = "Scheduled", ago: timedelta = timedelta(minutes=1)) -> Any:
    return {
        "reason": reason,
        "reportingController": "moorage",
        "reportingInstance": f"moorage-{host}",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "first", "uid": "u-1"},
        "eventTime": stamp(ago),
    }


def events(*objects: Any) -> tuple[Event, ...]:
    """As they are read."""
    return tuple(read_as(Event, obj) for obj in objects)


def lease(host: str = "vm", ago: timedelta = timedelta(seconds=2)) -> Any:
    namespace, name = RIVAL
    spec = {"leaseDurationSeconds": 8, "renewTime": stamp(ago), "holderIdentity": f"{host}_0f1e"}
    return {"metadata": {"namespace": namespace, "name": name}, "spec": spec}


def decided(
    scheduler: str = "moorage",
    uid: str = "u-1",
    *,
    node: str | None = "node-a",
    queue: str = "",
    name: str = "first",
    devices: bool = True,
) -> DecidedPod:
    return DecidedPod(
        ("default", name, uid),
        scheduler,
        is_bound=bool(node),
        is_ours=bool(queue),
        asks_for_devices=devices,
    )


def seen(*found: Any, leases: tuple[Any, ...] = (), **changes: Any) -> Setup:
    pods = {"decided_pods": (decided(),), **changes}
    return replace(whole(), scheduler_events=events(*found), rival_leases=leases, **pods)


def test_the_release_s_own_replicas_are_no_rivals() -> None:
    own = (
        election(SYSTEM, "moorage-scheduler", OWN_POD),
        decision(OWN_POD),
        decision("moorage-scheduler-5d9c7f7b4-x2x9z"),
    )

    assert bad(seen(*own)) == []


def test_one_that_holds_another_lease_is_told_before_it_binds_anything() -> None:
    setup = seen(election(*RIVAL), leases=(lease(),))

    ((level, said),) = bad(setup)

    assert level is Level.ERROR
    assert said == (
        "scheduler: kube-scheduler vm, which holds the Lease kube-system/kube-scheduler-moorage,"
        " has the schedulerName moorage, too: it binds pods past the plugin, uncharged."
    )
    (finding,) = (f for f in findings_of(setup) if f.level is Level.ERROR)
    assert finding.mend.startswith("Stop it, or give its profile another schedulerName")
    assert not is_whole(findings_of(setup))


@pytest.mark.parametrize("leases", [(), (lease(ago=timedelta(minutes=2)),), (lease(host=""),)])
def test_one_that_has_ended_is_none(leases: tuple[Any, ...]) -> None:
    assert bad(seen(election(*RIVAL), leases=leases)) == []


def test_one_without_election_is_told_by_what_it_decided() -> None:
    ((level, said),) = bad(seen(decision("vm")))

    assert level is Level.ERROR
    assert (
        "kube-scheduler vm, which is not a pod of this release, has the schedulerName moo" in said
    )
    assert said.endswith("2026-05-01T11:59:00Z: Scheduled of Pod default/first.")


def test_what_was_bound_a_while_ago_is_told_and_fails_nothing() -> None:
    """Whoever ended it has still to create these pods again."""
    setup = seen(
        decision("vm", ago=timedelta(minutes=20)),
        decision("vm", "FailedScheduling", ago=timedelta(minutes=7)),
    )

    ((level, said),) = bad(setup)

    assert level is Level.WARNING
    assert "Scheduled of Pod default/first" in said
    assert is_whole(findings_of(setup))


def test_one_that_bound_a_while_ago_and_refuses_now_lives() -> None:
    setup = seen(
        decision("vm", ago=timedelta(minutes=50)),
        decision("vm", "FailedScheduling", ago=timedelta(minutes=1)),
    )

    ((level, said),) = bad(setup)

    assert level is Level.ERROR
    assert "Scheduled of Pod default/first" in said


@pytest.mark.parametrize("minutes", [7, 29, 34])
def test_one_that_says_the_same_again_lives_for_longer(minutes: int) -> None:
    """The time of a series is brought up to date every half an hour."""
    said = decision("vm", "FailedScheduling", ago=timedelta(minutes=50))
    said["series"] = {"count": 9, "lastObservedTime": stamp(timedelta(minutes=minutes))}
    once = [decision("vm", "FailedScheduling", ago=timedelta(minutes=n)) for n in (6, 7, 8)]

    def setup() -> Setup:
        every = events(decision("vm", ago=timedelta(minutes=50)), said, *once)
        return replace(seen(), scheduler_events=tuple(deciding(every)))

    assert [level for level, _ in bad(setup())] == [Level.ERROR]
    assert not is_whole(findings_of(setup()))

    said["series"]["lastObservedTime"] = stamp(timedelta(minutes=36))
    assert is_whole(findings_of(setup()))


@pytest.mark.parametrize(
    "pods",
    [
        (),
        (decided("default-scheduler"),),
        (decided(uid="u-2"),),
        (decided(node=None),),
        (decided(queue="vision"),),
        (decided(devices=False),),
    ],
)
def test_a_decision_that_no_pod_confirms_counts_for_nothing(pods: tuple[Any, ...]) -> None:
    """Each user who may write Events in a namespace may write such ones."""
    assert bad(seen(decision("vm"), decided_pods=pods)) == []


def test_a_refusal_of_a_pod_that_waits_or_that_the_plugin_bound_counts() -> None:
    for pod in (decided(node=None), decided(queue="vision")):
        setup = seen(decision("vm", "FailedScheduling"), decided_pods=(pod,))
        assert [level for level, _ in bad(setup)] == [Level.ERROR]


@pytest.mark.parametrize(
    "spec",
    [
        {"resourceClaims": [{"name": "camera"}]},
        {"containers": [{"resources": {"limits": {"cpu": "1", "akri.sh/camera": "1"}}}]},
        {"initContainers": [{"resources": {"limits": {"example.com/gpu": "1"}}}]},
    ],
)
def test_a_pod_asks_for_devices_by_a_claim_or_an_extended_resource(spec: Any) -> None:
    metadata = {"namespace": "default", "name": "first", "uid": "u-1"}

    assert decided_pod({"metadata": metadata, "spec": spec}).asks_for_devices
    plain: Any = {"containers": [{"resources": {"limits": {"cpu": "1"}}}, {"resources": None}]}
    assert not decided_pod({"metadata": metadata, "spec": plain}).asks_for_devices


@pytest.mark.parametrize("stamp", ["9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-14:00"])
@pytest.mark.parametrize("reason", ["Scheduled", "FailedScheduling"])
def test_times_at_the_end_of_time_end_no_check(stamp: str, reason: str) -> None:
    event = decision("vm", reason) | {"eventTime": stamp}

    assert list(deciding(events(event))) == [*events(event)]
    assert [level for level, _ in bad(seen(event))][:1] in ([Level.ERROR], [Level.WARNING])


ODD: list[Any] = [
    {},
    {"regarding": None},
    {"regarding": {"kind": "Lease"}},
    {"regarding": {"kind": "Lease", "namespace": "kube-system"}},
    {"regarding": {"kind": "Pod"}, "reportingController": "moorage", "reportingInstance": "vm"},
    {**decision("vm"), "regarding": {"kind": "Pod", "namespace": "default"}},
    {**decision("vm"), "reportingInstance": None},
    {**decision("vm"), "regarding": {"kind": "Pod", "namespace": "default", "name": "a/log"}},
    {**decision("vm"), "regarding": {"kind": "Pod", "namespace": "default", "name": ".."}},
    {**decision("vm"), "regarding": {"kind": "Pod", "namespace": "a.b", "name": "first"}},
    election("kube-system", "../moorage"),
    {name: value for name, value in decision("vm").items() if name in ("reason", "regarding")},
]


def test_odd_events_and_leases_tell_nothing() -> None:
    assert bad(seen(*ODD, leases=({"metadata": {"name": "x"}},))) == []
    assert rival_leases(events(*ODD), SYSTEM, (SYSTEM, "moorage-scheduler")) == ()
    assert not any(is_of_another(event, PODS, SYSTEM) for event in events(*ODD))


def test_a_replica_of_another_release_is_none_of_this_one_s() -> None:
    """Told by its pod, while that is there; both names begin alike."""
    other = {
        **PODS[0],
        "metadata": {**PODS[0]["metadata"], "name": "moorage-scheduler-7", "namespace": "other"},
    }

    ((level, said),) = bad(seen(decision("moorage-scheduler-7"), pods=(*PODS, other)))

    assert level is Level.ERROR
    assert "kube-scheduler moorage-scheduler-7, which is not a pod of this release" in said
    assert bad(seen(decision("moorage-scheduler-7"))) == []


def test_of_each_host_the_newest_decisions_are_looked_at() -> None:
    minutes = [timedelta(minutes=n) for n in range(20)]
    found = [
        decision(host, reason, ago)
        for host in ("vm", "other")
        for reason in ("Scheduled", "FailedScheduling")
        for ago in minutes
    ]

    looked_at = list(deciding(events(*found)))

    assert len(looked_at) == 2 * 2 * MOST_DECISIONS
    assert {event.event_time for event in looked_at} == {
        stamp(ago) for ago in minutes[:MOST_DECISIONS]
    }


def test_one_is_told_once_although_lease_and_decisions_tell_of_it() -> None:
    assert len(bad(seen(election(*RIVAL), decision("vm"), leases=(lease(),)))) == 1


def test_one_that_took_the_release_s_own_lease_is_told() -> None:
    taken = {"spec": {**whole().lease["spec"], "holderIdentity": "vm_0f1e"}}  # type: ignore[index]

    ((level, said),) = bad(seen(lease=taken))

    assert level is Level.ERROR
    assert "kube-scheduler vm, which holds the Lease moorage-system/moorage-scheduler" in said


def test_on_a_control_plane_of_ones_own_any_machine_may_decide() -> None:
    """The plugin is in static pods there, whose hosts are not known here."""
    driver = {**whole().pods[0], "metadata": {**whole().pods[0]["metadata"], "labels": {}}}  # type: ignore[index]

    assert bad(seen(decision("control-plane-1"), pods=(driver,))) == []


def test_events_that_may_not_be_read_are_told() -> None:
    setup = replace(whole(), scheduler_events=Unread("403 Forbidden"))

    assert bad(setup) == [(Level.WARNING, "scheduler: Not checked: 403 Forbidden")]


def test_leases_to_read_are_those_of_others_where_users_write_nothing() -> None:
    own = (SYSTEM, "moorage-scheduler")
    found = (election(*RIVAL), election(*RIVAL), election(*own), election("lab", "forged"))

    assert rival_leases(events(*found), SYSTEM, own) == (RIVAL,)


def a_pod(uid: str = "u-1", name: str = "first", queue: str = "") -> Any:
    """As the API server has it, with a claim."""
    annotations = {QUEUE_ANNOTATION: queue} if queue else {}
    metadata = {"namespace": "default", "name": name, "uid": uid, "annotations": annotations}
    spec = {
        "schedulerName": "moorage",
        "nodeName": "node-a",
        "resourceClaims": [{"name": "camera"}],
    }
    return {"metadata": metadata, "spec": spec}


class FakeEventServer:
    """An API server of Events, Leases and pods; notes what is asked of it."""

    def __init__(self, *events: Any) -> None:
        self.events = events
        self.pods = [a_pod()]
        self.asked: list[str] = []
        self.error: ApiError | None = None

    async def list(self, selection: Selection) -> Page:
        return Page(tuple(self._chosen(selection)), 1)

    async def pages(self, selection: Selection) -> AsyncIterator[Page]:
        chosen = self.pods if selection.resource.plural == "pods" else self._chosen(selection)
        if chosen is self.pods:
            self.asked.append(selection.field_selector)
            if self.error is not None:
                raise self.error
        for each in chosen:
            yield Page((each,), 1)

    def _chosen(self, selection: Selection) -> Sequence[Any]:
        self.asked.append(f"{selection.namespace} {selection.field_selector}")
        kind = "Lease" if "regarding.kind=Lease" in selection.field_selector else "Pod"
        of_kind = [e for e in self.events if e["regarding"]["kind"] == kind]
        here = selection.namespace
        return [e for e in of_kind if here in ("", e["regarding"]["namespace"])]

    async def get(self, path: ObjectPath) -> Any:
        if (path.resource.plural, path.name) != ("leases", RIVAL[1]):
            raise NotFoundError("none")
        return lease()


def settings() -> CheckSettings:
    found = parse_settings(["check"], {})
    assert isinstance(found, CheckSettings)
    return found


async def test_events_of_the_release_s_own_are_read_and_not_kept() -> None:
    server = FakeEventServer(
        election(*RIVAL), election("lab", "forged"), decision(OWN_POD), decision("vm")
    )

    found = await read_rivals(cast(ApiClient, server), settings(), PODS)

    assert found.scheduler_events == events(election(*RIVAL), decision("vm"))
    assert (found.rival_leases, found.decided_pods) == ((lease(),), (decided(),))


async def test_where_no_other_decides_no_pod_is_read() -> None:
    server = FakeEventServer(decision(OWN_POD), decision(OWN_POD))

    found = await read_rivals(cast(ApiClient, server), settings(), PODS)

    assert (found.scheduler_events, found.decided_pods) == ((), ())
    assert not [asked for asked in server.asked if asked.startswith("spec.schedulerName")]


async def test_one_forged_event_keeps_no_other_from_being_looked_at() -> None:
    """Its name is any text: as a part of a path it would lead elsewhere, and be forbidden."""
    forged = decision("x")
    forged["regarding"] = {**forged["regarding"], "name": "first/log"}
    server = FakeEventServer(forged, decision("vm"))

    found = await read_rivals(cast(ApiClient, server), settings(), PODS)

    assert found.scheduler_events == events(decision("vm"))


async def test_forged_events_hide_no_other_and_cost_no_more_calls() -> None:
    """What no pod confirms takes no place; of what pods confirm, bindings come first."""
    soon = timedelta(seconds=1)
    unconfirmed = [decision(f"a-{n}", ago=soon) for n in range(300)]
    for event in unconfirmed:
        event["regarding"] = {**event["regarding"], "uid": "u-9"}
    refusals = [decision(f"b-{n}", "FailedScheduling", ago=soon) for n in range(300)]
    bound = [decision(f"c-{n}", ago=soon) for n in range(300)]
    for event in bound:
        event["regarding"] = {**event["regarding"], "name": "ours", "uid": "u-3"}
    rival = decision("vm", ago=timedelta(minutes=5))
    server = FakeEventServer(*unconfirmed, *refusals, rival, *bound)
    server.pods.append(a_pod("u-3", "ours", "vision"))

    found = await read_rivals(cast(ApiClient, server), settings(), PODS)

    assert isinstance(found.scheduler_events, tuple)
    assert found.scheduler_events[:1] == events(rival)
    assert len(found.scheduler_events) == MOST_HOSTS
    assert found.decided_pods == (decided(),)
    assert server.asked.count("spec.schedulerName=moorage") == 1
    assert len(server.asked) < 8


async def test_pods_that_may_not_be_listed_are_told() -> None:
    server = FakeEventServer(decision("vm"))
    server.error = ForbiddenError("pods is forbidden")

    found = await read_rivals(cast(ApiClient, server), settings(), PODS)

    assert found.scheduler_events == Unread("pods is forbidden")


async def test_on_a_control_plane_of_ones_own_events_of_pods_are_not_read() -> None:
    """They are as many as the cluster's pods."""
    server = FakeEventServer(decision("vm"))

    found = await read_rivals(cast(ApiClient, server), settings(), ())

    assert found.scheduler_events == ()
    assert not [asked for asked in server.asked if "kind=Pod" in asked]
