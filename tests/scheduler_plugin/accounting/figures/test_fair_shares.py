"""Fair shares: quota first, then priority, then weight; whole devices, level by level."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_plugin.accounting.figures.fair_shares import fair_shares
from scheduler_plugin.accounting.queues.queues import QueueTree
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import Queue, QueueName, Share
from tests.scheduler_plugin.builders import (
    a_queue,
)

KEY = ResourceKey("onvif")
NAMES = [QueueName(name) for name in "abcdefg"]
_UNLISTED = Share()


def a_tree(*queues: Queue) -> QueueTree:
    tree = QueueTree()
    for queue in queues:
        tree.put(queue)
    return tree


def shares(tree: QueueTree, total: int | None, **asked: int) -> dict[str, int]:
    found = fair_shares(tree, KEY, {QueueName(n): amount for n, amount in asked.items()}, total)
    return {str(name): share for name, share in found.items()}


def test_quota_is_first_and_weight_divides_the_rest() -> None:
    tree = a_tree(a_queue("a", onvif=(2, -1, 3)), a_queue("b", onvif=(4, -1, 1)))

    assert shares(tree, 14, a=100, b=100) == {"a": 2 + 6, "b": 4 + 2}


def test_who_asks_for_less_leaves_it_to_the_others() -> None:
    tree = a_tree(*(a_queue(name, onvif=(2, -1)) for name in "abc"))

    assert shares(tree, 9, a=1, b=3, c=100) == {"a": 1, "b": 3, "c": 5}


def test_priority_goes_before_weight() -> None:
    tree = a_tree(
        a_queue("a", onvif=(1, -1, 1), priority=200),
        a_queue("b", onvif=(1, -1, 1000)),
        a_queue("c", onvif=(1, -1, 1000)),
    )

    assert shares(tree, 8, a=5, b=9, c=9) == {"a": 5, "b": 2, "c": 1}
    assert shares(tree, 3, a=5, b=9, c=9) == {"a": 1, "b": 1, "c": 1}


def test_without_weight_nobody_goes_beyond_its_quota_though_devices_are_free() -> None:
    tree = a_tree(a_queue("a", onvif=(2, -1, 0)), a_queue("b", onvif=(0, -1, 0)))

    assert shares(tree, 9, a=9, b=9) == {"a": 2, "b": 0}
    assert shares(tree, None, a=9, b=9) == {"a": 2, "b": 0}


def test_quotas_beyond_what_there_is_are_met_by_their_size() -> None:
    tree = a_tree(
        a_queue("a", onvif=(6, -1)), a_queue("b", onvif=(3, -1)), a_queue("c", onvif=(-1, -1))
    )

    assert shares(tree, 6, a=9, b=9, c=9) == {"a": 4, "b": 2, "c": 0}
    assert shares(tree, 11, a=9, b=9, c=9) == {"a": 6, "b": 3, "c": 2}


def test_a_queue_divides_what_it_has_and_its_own_pods_are_a_child_without_a_quota() -> None:
    tree = a_tree(
        a_queue("top", onvif=(6, 6)),
        a_queue("a", parent="top", onvif=(2, -1)),
        a_queue("b", parent="top", onvif=(0, 1)),
        a_queue("beside", onvif=(0, -1)),
    )

    found = shares(tree, 20, top=9, a=9, b=9, beside=30)

    assert found == {"top": 6, "a": 3, "b": 1, "beside": 14}


def test_a_queue_that_does_not_list_a_class_lets_quotas_through() -> None:
    tree = a_tree(
        a_queue("top"), a_queue("a", parent="top", onvif=(3, -1)), a_queue("b", onvif=(1, -1))
    )

    assert shares(tree, 4, a=9, b=9) == {"top": 3, "a": 3, "b": 1}


def test_each_of_a_cycle_counts_once() -> None:
    tree = a_tree(a_queue("a", parent="b", onvif=(1, 3)), a_queue("b", parent="a", onvif=(1, 9)))

    assert shares(tree, 9, a=5, b=5) == {"b": 8, "a": 3}


@st.composite
def trees(draw: st.DrawFn) -> QueueTree:
    tree = QueueTree()
    for name in NAMES:
        parent = draw(st.sampled_from(["", *NAMES[: NAMES.index(name)]]))
        quota = draw(st.integers(-1, 5))
        limit = draw(st.just(-1) | st.integers(max(quota, 0), 12))
        lists = draw(st.booleans())
        share = {"onvif": (quota, limit, draw(st.integers(0, 3)))} if lists else {}
        tree.put(a_queue(name, parent=parent, priority=draw(st.sampled_from([1, 100])), **share))
    return tree


ASKED = st.fixed_dictionaries({}, optional={name: st.integers(0, 9) for name in NAMES})
TOTALS = st.integers(0, 25)


def share_of(tree: QueueTree, name: QueueName) -> Share:
    return tree.share(name, KEY) or _UNLISTED


def own_share(tree: QueueTree, found: Mapping[QueueName, int], name: QueueName) -> int:
    return found.get(name, 0) - sum(found.get(child, 0) for child in tree.children(name))


def wants(tree: QueueTree, asked: Mapping[QueueName, int], name: QueueName) -> int:
    below = sum(wants(tree, asked, child) for child in tree.children(name))
    found, most = asked.get(name, 0) + below, share_of(tree, name).most.most
    return found if most is None else min(found, most)


def test_a_quota_without_an_end_below_one_with_an_end_is_given_what_comes_down() -> None:
    """It has no beyond, of which a weight of 0 could keep it."""
    tree = QueueTree()
    tree.put(a_queue("b", onvif=(0, -1, 1)))
    tree.put(a_queue("d", parent="b", onvif=(-1, -1, 0)))

    found = fair_shares(tree, KEY, {QueueName("d"): 1}, 1)

    assert found == {"b": 1, "d": 1}


@given(trees(), ASKED, TOTALS)
@settings(max_examples=300)
def test_no_more_than_there_is_is_asked_for_or_allowed_and_nothing_is_left_that_one_could_have(
    tree: QueueTree, asked: Mapping[QueueName, int], total: int
) -> None:
    found = fair_shares(tree, KEY, asked, total)
    roots = [name for name in NAMES if len(tree.path(name)) == 1]

    assert sum(found.get(root, 0) for root in roots) <= total
    for name in NAMES:
        assert found.get(name, 0) <= wants(tree, asked, name)
        assert 0 <= own_share(tree, found, name) <= asked.get(name, 0)
    left = total - sum(found.get(root, 0) for root in roots)
    if left:
        hungry = (r for r in roots if found.get(r, 0) < wants(tree, asked, r))
        assert all(not share_of(tree, root).weight for root in hungry)


@given(trees(), ASKED, TOTALS)
@settings(max_examples=300)
def test_among_siblings_quota_then_priority_then_weight(
    tree: QueueTree, asked: Mapping[QueueName, int], total: int
) -> None:
    """Who is hungry has no sibling beyond its quota with a smaller claim to it."""
    found = fair_shares(tree, KEY, asked, total)
    for name in NAMES:
        share, queue = tree.share(name, KEY), tree.get(name)
        has = found.get(name, 0)
        if share is None or queue is None or has >= wants(tree, asked, name):
            continue
        siblings = [s for s in NAMES if tree.path(s)[1:] == tree.path(name)[1:] and s != name]
        for sibling in siblings:
            other, other_queue = tree.share(sibling, KEY), tree.get(sibling)
            if other is None or other_queue is None or other.quota.allows(found.get(sibling, 0)):
                continue
            assert not share.quota.most or has >= share.quota.most
            if share.weight:
                assert other_queue.priority >= queue.priority
            if share.weight and other_queue.priority == queue.priority:
                beyond = found[sibling] - (other.quota.most or 0)
                mine = has - (share.quota.most or 0)
                assert (2 * beyond - 1) * share.weight <= (2 * mine + 1) * other.weight


@given(trees(), ASKED, TOTALS, st.sampled_from(NAMES))
@settings(max_examples=300)
def test_more_devices_are_fewer_for_nobody_and_who_asks_for_more_gets_no_less(
    tree: QueueTree, asked: Mapping[QueueName, int], total: int, name: QueueName
) -> None:
    before = fair_shares(tree, KEY, asked, total)
    more = fair_shares(tree, KEY, asked, total + 1)
    greedy = fair_shares(tree, KEY, {**asked, name: asked.get(name, 0) + 1}, total)

    assert all(more.get(queue, 0) >= share for queue, share in before.items())
    assert own_share(tree, greedy, name) >= own_share(tree, before, name)
