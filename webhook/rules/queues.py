"""Rules for Queues: their fields, their place in the tree, and their deletion.

Only a contradiction in the tree is refused. An incomplete tree, such as a missing parent, is a
warning, so that a whole tree can be applied in any order. A Queue may move to another parent while
it owns claims: its charges move with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from driver.api import Problem
from scheduler_plugin.accounting.api import QueueTree, uses_by_configuration
from scheduler_plugin.models import queue_problems
from scheduler_plugin.objects.api import (
    Ceiling,
    ClaimView,
    ClassName,
    ResourceKey,
    amount_text,
    ceiling_text,
    parse_queue,
    unguarded,
    unguarded_driver,
)
from scheduler_plugin.objects.names import CHARGES_FINALIZER, Queue, QueueName
from webhook.findings import NOTHING_FOUND, Findings, listed, refused
from webhook.reviews import Review, part
from webhook.rules.entry_names import other_definitions
from webhook.rules.rule_context import RuleContext


def parent_of(body: Mapping[str, Any] | None) -> QueueName:
    """`spec.parent` of a Queue; "" for none."""
    return QueueName(part(body, "spec").get("parent") or "")


def name_of(review: Review) -> QueueName:
    return QueueName(review.name or (review.new or review.old or {})["metadata"]["name"])


def judge_written(review: Review, context: RuleContext) -> Findings:
    """Judge a CREATE or an UPDATE."""
    body = review.new or {}
    if _changes_nothing(body, review.old):
        return NOTHING_FOUND
    problems = queue_problems(body)
    cycle = list(_cycle(name_of(review), parent_of(body), context.tree))
    if problems:
        return refused([*problems, *cycle])
    queue = parse_queue(body)
    if not cycle and (odd := tuple(other_definitions(queue, context.tree))):
        return refused(odd)
    if cycle and review.old is not None and parent_of(review.old) == queue.parent:
        # The queue was in the cycle before: a change of its quota does not make it worse.
        return Findings(warnings=(*map(str, cycle), *_warnings(queue, context)))
    return Findings(tuple(cycle), tuple(_warnings(queue, context)))


def judge_deleted(review: Review, owned: Sequence[ClaimView], context: RuleContext) -> Findings:
    """Judge a DELETE.

    Args:
        review: The review.
        owned: The claims with the queue's label.
        context: The stored objects of the cluster.
    """
    name = name_of(review)
    problems = []
    if children := context.tree.children(name):
        sentence = f'Queue "{name}" has {_counted(len(children), "child", "children")}'
        mend = "Delete them first, or give them another parent."
        problems.append(Problem("metadata.name", f"{sentence}: {listed(children)}. {mend}"))
    allocated = sorted(f"{c.namespace}/{c.name}" for c in owned if c.is_allocated)
    if allocated:
        count = _counted(len(allocated), "allocated claim", "allocated claims")
        sentence = f'Queue "{name}" owns {count}: {listed(allocated)}.'
        mend = "Delete their pods first, and wait until the claims are deallocated."
        problems.append(Problem("metadata.name", f"{sentence} {mend}"))
    if problems:
        return refused(problems)
    return Findings(warnings=tuple(_finalizer_warning(name, review.old)))


def _finalizer_warning(name: QueueName, body: Mapping[str, Any] | None) -> Iterator[str]:
    """A warning if the queue is charged for something other than claims, by its finalizer."""
    if CHARGES_FINALIZER in part(body, "metadata", "finalizers"):
        yield (
            f'metadata.finalizers: Queue "{name}" is charged, or was a moment ago: it admits no'
            " pods from now on, and is removed when its pods have ended."
        )


def _changes_nothing(body: Mapping[str, Any], old: Mapping[str, Any] | None) -> bool:
    """Whether the spec is unchanged: updates of labels or finalizers must always pass."""
    if old is None:
        return False
    return "deletionTimestamp" in body["metadata"] or body.get("spec") == old.get("spec")


def _cycle(name: QueueName, parent: QueueName, tree: QueueTree) -> Iterator[Problem]:
    """A cycle through other queues; `queue_problems` reports a queue that is its own parent."""
    if not parent or parent == name:
        return
    path = tree.path(parent)
    last = tree.get(path[-1])
    if name not in path and last is not None and last.parent == name:
        path = (*path, name)  # The tree does not know the queue yet.
    if name in path:
        members = [name, *path[: path.index(name) + 1]]
        sentence = f"{' -> '.join(members)} is a cycle. Name another parent."
        yield Problem("spec.parent", sentence)


def unknown_sharers(body: Mapping[str, Any] | None, context: RuleContext) -> list[QueueName]:
    """The names in `spec.claimSharing.queues` without a stored Queue."""
    names = part(body, "spec", "claimSharing").get("queues") or ()
    written = [QueueName(name) for name in names if isinstance(name, str) and name]
    return [name for name in written if name not in context.tree]


def _warnings(queue: Queue, context: RuleContext) -> Iterator[str]:
    tree = context.tree
    uses = uses_by_configuration(context.catalog)
    if queue.parent and queue.parent not in tree:
        yield f'spec.parent: Queue "{queue.parent}" does not exist (yet).'
    yield from _about_sharers(queue, tree)
    for number, key in enumerate(queue.shares):
        path = f"spec.resources[{number}]"
        name = queue.class_of(key)
        for text in (*_about_class(name, context), *_about_drivers(name, context)) if name else ():
            yield f"{path}.deviceClass: {text}"
        yield from (f"{path}.driver: {text}" for text in _about_driver(queue, key, context))
        yield from (f"{path}.quota: {text}" for text in _about_quotas(queue, key, tree))
        yield from (f"{path}.quota: {text}" for text in _about_devices(queue, key, context, uses))


def _about_sharers(queue: Queue, tree: QueueTree) -> Iterator[str]:
    known = (name for name in queue.sharing.queues or () if name != queue.name)
    names = [name for name in known if name not in tree]
    if len(names) == 1:
        yield f'spec.claimSharing.queues: Queue "{names[0]}" does not exist (yet).'
    elif names:
        yield f"spec.claimSharing.queues: {len(names)} Queues do not exist (yet): {listed(names)}."


def _about_class(key: ResourceKey, context: RuleContext) -> Iterator[str]:
    if not context.exists(key):
        yield f'There is no DeviceClass or Configuration "{key}" (yet).'
    elif (counted := context.catalog.key(ClassName(key))) != key:
        yield f'Uses of "{key}" are counted under "{counted}": list "{counted}" instead.'
    elif (view := context.catalog.class_named(ClassName(key))) is not None and view.is_of_several:
        yield (
            f'Uses of "{key}" are counted under the Configuration of each device: list the'
            " Configurations instead."
        )


def _about_drivers(key: ResourceKey, context: RuleContext) -> Iterator[str]:
    view = context.catalog.class_named(ClassName(key))
    found = view and unguarded(view, (), context.settings.accounted_drivers)
    if found:
        yield found


def _about_driver(queue: Queue, key: ResourceKey, context: RuleContext) -> Iterator[str]:
    definition = queue.shares[key].definition
    driver = definition.driver if definition is not None else ""
    guarded = context.settings.accounted_drivers
    if driver and (found := unguarded_driver(str(key), driver, guarded)):
        yield found


def _about_devices(
    queue: Queue, key: ResourceKey, context: RuleContext, uses: Mapping[ResourceKey, int]
) -> Iterator[str]:
    """Warn of a quota above the uses of all published devices.

    Devices of other drivers are not checked: the webhook does not read ResourceSlices.
    """
    quota, there = queue.shares[key].quota.most or 0, uses.get(key, 0)
    if quota <= there or not context.catalog.has_configuration(key):
        return
    if there:
        yield f"{quota} is more than the {there} uses of all published devices of {key}."
    else:
        yield f"No device of {key} is published (yet)."


def _about_quotas(queue: Queue, key: ResourceKey, tree: QueueTree) -> Iterator[str]:
    """Warn of children with larger quotas than their parent, if the parent lists the resource."""
    mine = queue.shares[key].quota
    children = [child for name in tree.children(queue.name) if (child := tree.get(name))]
    yield from _excess(queue.name, mine, key, children)
    parent = tree.get(queue.parent) if queue.parent else None
    if parent is not None and key in parent.shares:
        names = (name for name in tree.children(parent.name) if name != queue.name)
        siblings = [sibling for name in names if (sibling := tree.get(name))]
        yield from _excess(parent.name, parent.shares[key].quota, key, [*siblings, queue])


def _excess(
    parent: QueueName, quota: Ceiling, key: ResourceKey, children: Iterable[Queue]
) -> Iterator[str]:
    quotas = [child.shares[key].quota for child in children if key in child.shares]
    if quota.most is None or not quotas:
        return
    given = [found.most for found in quotas if found.most is not None]
    if len(given) < len(quotas):
        yield (
            f'A child of queue "{parent}" has an unlimited quota of {key}, but the queue itself'
            f" has {ceiling_text(key, quota)}."
        )
    elif not quota.allows(sum(given)):
        yield (
            f'The children of queue "{parent}" have quotas of {amount_text(key, sum(given))} {key}'
            f" in total, more than its own {ceiling_text(key, quota)}."
        )


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
