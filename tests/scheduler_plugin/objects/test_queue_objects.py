"""Queue objects: what they say, and everything that is wrong with them at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler_plugin.objects.amounts import NOTHING, UNLIMITED, Ceiling
from scheduler_plugin.objects.measures import Definition, Measure
from scheduler_plugin.objects.names import ClaimSharing, OnOwnerExit, Queue, Share, SharingPolicy
from scheduler_plugin.objects.queue_objects import parse_queue
from tests.scheduler_plugin.builders import a_queue, a_queue_object

GRACE = "spec.claimSharing.ownerExitGracePeriod"


def test_queue_of_the_design() -> None:
    queue = a_queue(
        parent="research",
        namespaceSelector={},
        claimSharing={
            "policy": "Deny",
            "queues": ["robots"],
            "onOwnerExit": "Keep",
            "ownerExitGracePeriod": "1h30m",
            "evictForeign": "Allow",
            "labelAtCreate": "Allow",
        },
        priority=7,
        preemptMinRuntime="30s",
        reclaimMinRuntime="0",
        onvif=(4, 8, 3),
        udev=(-1, -1),
    )

    assert (queue.name, queue.uid, queue.generation, queue.parent) == (
        "vision", "uid-of-vision", 1, "research",
    )  # fmt: skip
    assert queue.priority == 7
    assert queue.preempt_min_runtime == timedelta(seconds=30)
    assert queue.reclaim_min_runtime == timedelta()
    assert queue.sharing == ClaimSharing(
        policy=SharingPolicy.DENY,
        queues=("robots",),  # type: ignore[arg-type]  # a name is a string
        on_owner_exit=OnOwnerExit.KEEP,
        owner_exit_grace_period=timedelta(minutes=90),
        evict_foreign=SharingPolicy.ALLOW,
        label_at_create=SharingPolicy.ALLOW,
    )
    assert queue.shares == {
        "onvif": Share(Ceiling(4), Ceiling(8), weight=3),
        "udev": Share(UNLIMITED, UNLIMITED),
    }


def test_entries_of_measures_are_read_in_thousandths_of_their_unit() -> None:
    memory = {"name": "memory", "driver": "gpu.example.com", "measure": {"capacity": "memory"}}
    queue = a_queue(
        resources=[
            {**memory, "quota": "1500m", "limit": "320Gi"},
            {"name": "h200", "driver": "gpu.example.com", "selector": "true", "quota": 8},
            {"deviceClass": "nic", "measure": {"counter": {"set": "a-*", "name": "b"}}, "limit": 1},
        ]
    )

    shares = {str(key): share for key, share in queue.shares.items()}
    assert [(share.quota.most, share.limit.most) for share in shares.values()] == [
        (1500, 320 * 2**30 * 1000),
        (8, None),
        (0, 1000),
    ]
    assert shares["memory"].definition == Definition(
        name="memory", driver="gpu.example.com", measure=Measure(capacity="memory")
    )
    assert shares["nic"].definition == Definition(
        name="nic", device_class="nic", measure=Measure(counter_set="a-*", counter="b")
    )
    assert [share.definition.key for share in shares.values() if share.definition] == [
        *queue.shares
    ]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"deviceClass": "gpu", "quota": 1, "per": "node"},
            ": Object contains unknown field `per`.",
        ),
        (
            {
                "name": "m",
                "driver": "d",
                "measure": {"counter": {"set": "a", "name": "b", "sum": 1}},
            },
            ".measure.counter: Object contains unknown field `sum`.",
        ),
        ({"deviceClass": "gpu", "quota": {}}, ".quota: Expected `int | str | null`, got `object`."),
        ({"deviceClass": "gpu", "limit": "1Gi"}, ".limit: '1Gi' is not a number of devices."),
        (
            {"name": "m", "deviceClass": "gpu", "driver": "d"},
            ".deviceClass: Exactly one of deviceClass and driver must be set.",
        ),
    ],
)
def test_an_entry_of_another_version_is_not_read_as_something_else(entry: Any, said: str) -> None:
    """After a rollback it may be left; the Queue's other entries go on counting."""
    queue = a_queue(resources=[{"deviceClass": "onvif", "quota": 2}, entry])

    assert queue.shares == {"onvif": Share(Ceiling(2), UNLIMITED)}
    assert queue.misread == (f"spec.resources[1]{said}",)


def test_what_is_not_written_is_the_least() -> None:
    queue = a_queue(resources=[{"deviceClass": "onvif"}])

    assert queue.shares == {"onvif": Share(NOTHING, UNLIMITED)}
    assert queue.sharing == ClaimSharing()
    assert a_queue(namespaceSelector=None) == Queue(
        name=queue.name, uid="uid-of-vision", generation=1
    )


@pytest.mark.parametrize(
    ("written", "share"),
    [
        ((-1, 8), Share(Ceiling(8), Ceiling(8))),
        ((-1, 0), Share(NOTHING, NOTHING)),
        ((-1, -1), Share(UNLIMITED, UNLIMITED)),
        ((4, -1), Share(Ceiling(4), UNLIMITED)),
    ],
)
def test_a_quota_without_an_end_is_the_limit(written: tuple[int, int], share: Share) -> None:
    assert a_queue(onvif=written).shares == {"onvif": share}


@pytest.mark.parametrize(
    ("written", "most"),
    [
        ((4, 8, 1), Ceiling(8)),
        ((4, 8, 0), Ceiling(4)),
        ((4, -1, 0), Ceiling(4)),
        ((0, -1, 0), NOTHING),
        ((-1, 8, 0), Ceiling(8)),
        ((-1, -1, 0), UNLIMITED),
    ],
)
def test_a_weight_of_0_makes_the_quota_the_end(
    written: tuple[int, int, int], most: Ceiling
) -> None:
    assert {share.most for share in a_queue(onvif=written).shares.values()} == {most}


def test_an_absent_selector_selects_no_namespace_and_an_empty_one_all() -> None:
    labels = {"team": "lab"}

    assert not a_queue(namespaceSelector=None).admits(labels)
    assert not a_queue(namespaceSelector=None).admits({})
    assert a_queue(namespaceSelector={}).admits(labels)
    assert a_queue(namespaceSelector={}).admits({})
    assert a_queue(namespaceSelector={"matchLabels": labels}).admits(labels)
    assert not a_queue(namespaceSelector={"matchLabels": labels}).admits({})


def test_selector_matches_as_kubernetes_does() -> None:
    expressions = [
        {"key": "team", "operator": "In", "values": ["a", "b"]},
        {"key": "team", "operator": "NotIn", "values": ["b"]},
        {"key": "x", "operator": "Exists"},
        {"key": "y", "operator": "DoesNotExist"},
        {"key": "z", "operator": "NotIn", "values": [""]},
    ]
    queue = parse_queue(a_queue_object(namespaceSelector={"matchExpressions": expressions}))

    matching = {"team": "a", "x": ""}

    assert queue.admits(matching)
    for wrong in ({"team": "b"}, {"team": "c"}, {"y": ""}, {"z": ""}):
        assert not queue.admits({**matching, **wrong})
    assert not queue.admits({"team": "a"})
