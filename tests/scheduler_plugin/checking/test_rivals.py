"""Another kube-scheduler of the same name, as its Events and its Lease tell of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduler_plugin.checking.findings import findings_of, is_whole
from scheduler_plugin.checking.rivals import rival_leases
from scheduler_plugin.checking.setups import Level, Setup, Unread
from tests.scheduler_plugin.checking.test_findings import NOW, SYSTEM, bad, whole

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
        "regarding": {"kind": "Pod", "namespace": "default", "name": "first"},
        "eventTime": stamp(ago),
    }


def lease(host: str = "vm", ago: timedelta = timedelta(seconds=2)) -> Any:
    namespace, name = RIVAL
    spec = {"leaseDurationSeconds": 8, "renewTime": stamp(ago), "holderIdentity": f"{host}_0f1e"}
    return {"metadata": {"namespace": namespace, "name": name}, "spec": spec}


def seen(*events: Any, leases: tuple[Any, ...] = (), **changes: Any) -> Setup:
    return replace(whole(), scheduler_events=events, rival_leases=leases, **changes)


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
        "scheduler: kube-scheduler vm, by the Lease kube-system/kube-scheduler-moorage, has the"
        " schedulerName moorage, too: it binds pods past the plugin, uncharged."
    )
    (finding,) = (f for f in findings_of(setup) if f.level is Level.ERROR)
    assert finding.mend.startswith("End it, or give its profile another schedulerName")
    assert not is_whole(findings_of(setup))


@pytest.mark.parametrize("leases", [(), (lease(ago=timedelta(minutes=2)),), (lease(host=""),)])
def test_one_that_has_ended_is_none(leases: tuple[Any, ...]) -> None:
    assert bad(seen(election(*RIVAL), leases=leases)) == []


def test_one_without_election_is_told_by_what_it_decided() -> None:
    ((level, said),) = bad(seen(decision("vm")))

    assert level is Level.ERROR
    assert "kube-scheduler vm, which is no pod of this release, has the schedulerName moo" in said
    assert said.endswith("2026-05-01T11:59:00Z: Scheduled, Pod default/first.")


def test_what_was_bound_a_while_ago_is_told_and_fails_nothing() -> None:
    """Whoever ended it has still to create these pods again."""
    setup = seen(
        decision("vm", ago=timedelta(minutes=20)),
        decision("vm", "FailedScheduling", ago=timedelta(minutes=7)),
    )

    ((level, said),) = bad(setup)

    assert level is Level.WARNING
    assert "Scheduled, Pod default/first" in said
    assert is_whole(findings_of(setup))


def test_one_is_told_once_although_lease_and_decisions_tell_of_it() -> None:
    assert len(bad(seen(election(*RIVAL), decision("vm"), leases=(lease(),)))) == 1


def test_one_that_took_the_release_s_own_lease_is_told() -> None:
    taken = {"spec": {**whole().lease["spec"], "holderIdentity": "vm_0f1e"}}  # type: ignore[index]

    ((level, said),) = bad(seen(lease=taken))

    assert level is Level.ERROR
    assert "kube-scheduler vm, by the Lease moorage-system/moorage-scheduler" in said


def test_on_a_control_plane_of_ones_own_any_machine_may_decide() -> None:
    """The plugin is in static pods there, whose hosts are not known here."""
    driver = {**whole().pods[0], "metadata": {**whole().pods[0]["metadata"], "labels": {}}}  # type: ignore[index]

    assert bad(seen(decision("control-plane-1"), pods=(driver,))) == []


def test_events_that_may_not_be_read_are_told() -> None:
    setup = replace(whole(), scheduler_events=Unread("403 Forbidden"))

    assert bad(setup) == [(Level.WARNING, "scheduler: Not looked at: 403 Forbidden")]


def test_leases_to_read_are_those_of_others() -> None:
    events = (election(*RIVAL), election(*RIVAL), election(SYSTEM, "moorage-scheduler"))

    assert rival_leases(events, (SYSTEM, "moorage-scheduler")) == (RIVAL,)
