"""The tree of queues: paths, odd trees, and what is inherited."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler_plugin.accounting.queues.effective_sharing import EffectiveSharing
from scheduler_plugin.accounting.queues.queues import QueueTree
from scheduler_plugin.objects.amounts import NOTHING, UNLIMITED, Ceiling, ResourceKey
from scheduler_plugin.objects.names import (
    OnOwnerExit,
    Queue,
    QueueCondition,
    QueueName,
    Share,
    SharingPolicy,
)
from tests.scheduler_plugin.builders import a_pod, a_queue, a_world, amounts, usage

ONVIF = ResourceKey("onvif")


def a_tree(**parents: str) -> QueueTree:
    tree = QueueTree()
    for name, parent in parents.items():
        tree.put(a_queue(name, **({"parent": parent} if parent else {})))
    return tree


def path(tree: QueueTree, name: str) -> str:
    return " ".join(tree.path(QueueName(name)))


def test_path_leads_to_the_root_whatever_the_order_of_events() -> None:
    tree = a_tree(leaf="middle", middle="root")
    assert path(tree, "leaf") == "leaf middle"

    tree.put(a_queue("root"))

    assert path(tree, "leaf") == "leaf middle root"
    assert len(tree) == 3
    assert tree.children(QueueName("root")) == ("middle",)
    assert set(tree.below(QueueName("root"))) == {"root", "middle", "leaf"}
    assert tree.conditions(QueueName("leaf")) == ()


def test_queue_without_its_parent_counts_as_a_root_and_says_so() -> None:
    tree = a_tree(leaf="root", root="")

    tree.remove(QueueName("root"))
    tree.remove(QueueName("root"))

    assert path(tree, "leaf") == "leaf"
    assert QueueName("root") not in tree
    message = 'Its parent "root" does not exist: the queue counts as a root.'
    assert tree.conditions(QueueName("leaf")) == ((QueueCondition.PARENT_MISSING, message),)
    assert tree.conditions(QueueName("root")) == ()


def test_all_ceilings_of_a_cycle_hold_for_all_that_are_in_it() -> None:
    tree = a_tree(a="b", b="c", c="a", d="c")

    assert [path(tree, name) for name in "abcd"] == ["a b c", "b c a", "c a b", "d c a b"]
    for name in "ad":
        ((condition, message),) = tree.conditions(QueueName(name))
        assert condition is QueueCondition.PARENT_CYCLE
        assert message.endswith("is a cycle: its ceilings hold for all that are in it.")
    assert "c -> a -> b -> c is a cycle" in tree.conditions(QueueName("d"))[0][1]


def test_name_without_a_queue_has_a_path_of_its_own() -> None:
    tree = a_tree(a="")

    assert path(tree, "gone") == "gone"
    assert tree.sharing(QueueName("gone")) == EffectiveSharing()
    assert tree.share(QueueName("gone"), ONVIF) is None


def test_every_field_of_sharing_is_inherited_by_itself() -> None:
    tree = QueueTree()
    tree.put(a_queue("root", claimSharing={"policy": "Deny", "onOwnerExit": "Evict"}))
    middle: dict[str, Any] = {"queues": ["a"], "ownerExitGracePeriod": "90s"}
    tree.put(a_queue("middle", parent="root", claimSharing=middle))
    leaf = {"policy": "Allow", "evictForeign": "Deny", "labelAtCreate": "Deny", "queues": []}
    tree.put(a_queue("leaf", parent="middle", claimSharing=leaf))

    assert tree.sharing(QueueName("middle")) == EffectiveSharing(
        policy=SharingPolicy.DENY,
        queues=(QueueName("a"),),
        on_owner_exit=OnOwnerExit.EVICT,
        owner_exit_grace_period=timedelta(seconds=90),
    )
    assert tree.sharing(QueueName("leaf")) == EffectiveSharing(
        policy=SharingPolicy.ALLOW,
        queues=(),
        on_owner_exit=OnOwnerExit.EVICT,
        owner_exit_grace_period=timedelta(seconds=90),
        evict_foreign=SharingPolicy.DENY,
        label_at_create=SharingPolicy.DENY,
    )


@pytest.mark.parametrize(
    ("other", "allowed"), [("own", True), ("child", False), ("friend", True), ("under", True)]
)
def test_opt_out_holds_for_children_and_not_below_exceptions(other: str, allowed: bool) -> None:
    tree = a_tree(child="own", friend="", under="friend")
    tree.put(a_queue("own", claimSharing={"policy": "Deny", "queues": ["friend"]}))

    assert tree.shares_with(QueueName("own"), QueueName(other)) is allowed


def test_unlisted_class_has_no_quota_in_the_queue_and_is_unchecked_above() -> None:
    tree = a_tree(leaf="middle", middle="root")
    tree.put(a_queue("root", onvif=(3, -1)))

    assert list(tree.checks(QueueName("leaf"), ONVIF)) == [
        ("leaf", Share(NOTHING, UNLIMITED)),
        ("root", Share(Ceiling(3), UNLIMITED)),
    ]


def test_what_is_listed_is_known_as_long_as_one_queue_lists_it() -> None:
    tree = QueueTree()
    tree.put(a_queue("a", onvif=(1, 1)))
    tree.put(a_queue("b", onvif=(1, 1)))

    tree.put(a_queue("a"))
    assert tree.lists(ONVIF)
    tree.remove(QueueName("b"))
    assert not tree.lists(ONVIF)
    assert [queue.name for queue in tree] == ["a"]


def test_usage_moves_with_a_queue_to_its_new_ancestors() -> None:
    world = a_world(a_queue("leaf", parent="old"), a_queue("old"), a_queue("new"))
    world.put_pod(a_pod(requests={"akri.sh/onvif": 2}, queue="leaf", node="n"))

    assert usage(world, "old") == amounts(onvif=2)
    world.put_queue(a_queue("leaf", parent="new"))
    assert [usage(world, name) for name in ("old", "new")] == [amounts(), amounts(onvif=2)]
    world.put_queue(a_queue("new", parent="leaf"))
    assert [usage(world, name) for name in ("leaf", "new")] == [amounts(onvif=2)] * 2
    world.delete_queue(QueueName("leaf"))
    assert [usage(world, name) for name in ("leaf", "new")] == [amounts(onvif=2), amounts()]


def test_min_runtime_before_preemption_is_the_nearest_on_the_path() -> None:
    tree = QueueTree()
    tree.put(a_queue("root", preemptMinRuntime="1m"))
    tree.put(a_queue("middle", parent="root"))
    tree.put(a_queue("leaf", parent="middle"))
    tree.put(a_queue("other", parent="root", preemptMinRuntime="0"))

    found = {queue.name: tree.preempt_min_runtime(queue.name) for queue in tree}

    minute, none = timedelta(minutes=1), timedelta()
    assert found == {"root": minute, "middle": minute, "leaf": minute, "other": none}
    assert tree.preempt_min_runtime(QueueName("unknown")) == none


@pytest.mark.parametrize(
    ("of", "by", "minutes"),
    [
        ("a1", "a2", 1),  # Siblings: what the queue itself says.
        ("a2", "a1", 10),  # It says nothing: its parent does.
        ("a1", "b1", 10),  # Cousins part below the root: a's counts, and not its child's.
        ("b1", "a1", 100),  # b says nothing: the root does. What b1 says is for its siblings.
        ("a1", "a", 1),
        ("a", "a1", 10),
        ("a1", "elsewhere", 100),  # Of two trees the roots part.
        ("elsewhere", "a1", 0),
    ],
)
def test_min_runtime_before_reclaim_is_said_where_the_branches_part(
    of: str, by: str, minutes: int
) -> None:
    tree = QueueTree()
    tree.put(a_queue("root", reclaimMinRuntime="100m"))
    tree.put(a_queue("a", parent="root", reclaimMinRuntime="10m"))
    tree.put(a_queue("a1", parent="a", reclaimMinRuntime="1m"))
    tree.put(a_queue("a2", parent="a"))
    tree.put(a_queue("b", parent="root"))
    tree.put(a_queue("b1", parent="b", reclaimMinRuntime="2m"))
    tree.put(a_queue("elsewhere"))

    found = tree.reclaim_min_runtime(QueueName(of), by=QueueName(by))

    assert found == timedelta(minutes=minutes)


def test_min_runtimes_end_in_a_cycle_too() -> None:
    tree = QueueTree()
    tree.put(a_queue("a", parent="b", reclaimMinRuntime="1m"))
    tree.put(a_queue("b", parent="a", preemptMinRuntime="2m"))

    assert tree.preempt_min_runtime(QueueName("a")) == timedelta(minutes=2)
    assert tree.reclaim_min_runtime(QueueName("b"), by=QueueName("a")) == timedelta(minutes=1)


def test_names_of_queues_that_never_were_are_not_kept() -> None:
    """Whoever may create pods can name as many as he likes, one after the other."""
    world = a_world(a_queue("a", onvif=(1, 1)))
    tree = world.facts.tree

    def entries() -> int:
        return sum(len(table) for table in vars(tree).values())

    assert tree.path(QueueName("a")) == ("a",)
    assert tree.guaranteed(QueueName("a"), ONVIF) == 1
    before = entries()
    for number in range(50):
        pod = a_pod("p", queue=f"invented-{number}", requests={"akri.sh/onvif": 1})
        world.put_pod(pod)
        assert tree.path(pod.queue) == (pod.queue,)
        assert tree.guaranteed(pod.queue, ONVIF) == 0
        world.delete_pod(pod.uid)

    assert entries() == before


def test_keys_that_mean_something_in_a_queue_are_those_of_its_own_tree_each_name_once() -> None:
    def a_measuring(name: str, parent: str, capacity: str) -> Queue:
        measure = {"capacity": capacity}
        entry = {"name": "m", "driver": "gpu.example.com", "measure": measure}
        return a_queue(name, parent=parent, resources=[entry])

    tree = a_tree(all="")
    queues = [
        a_measuring("mid", "all", "one"),
        a_measuring("leaf", "mid", "two"),
        a_measuring("elsewhere", "", "three"),
    ]
    for queue in queues:
        tree.put(queue)
    one, two, three = (key for queue in queues for key in queue.shares)
    keys = [three, two, one, ONVIF]

    def shown(name: str) -> list[ResourceKey]:
        return tree.shown_keys(QueueName(name), keys)

    assert shown("mid") == [one, "onvif"]
    assert shown("leaf") == [two, "onvif"]
    assert shown("all") in ([one, "onvif"], [two, "onvif"])
    assert shown("elsewhere") == [three, "onvif"]
    assert tree.shown_keys(QueueName("unknown"), keys) == ["onvif"]
