"""The states of the discovery handlers of a node, in the status of a Configuration.

    reports of the sources ──entry_of──► the node's entry in `status.nodes`, or none

Only a node with a handler that is not Active, or with a problem, has an entry. A node writes only
its own entry, as one field manager among others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from driver.api import NodeName
from driver.discovery.details import shown
from driver.handlers.registrations import HandlerState
from kube.kinds import CONFIGURATIONS
from kube.shapes.times import timestamp
from kube.words import some_of

LONGEST_MESSAGE = 1024
MOST_NODES = 3
"""Nodes that a condition names at most."""

PROPERTIES_READ = "propertiesRead"
"""Field of a node's entry: False while handlers do not get the current properties."""

_REGISTERED = "registered"
_COMPLETE = "devicesComplete"

LATE_FIELDS = frozenset({_COMPLETE})
"""Fields of a node's entry that older definitions lack; Helm does not update definitions."""

_GRAVITY = {HandlerState.ACTIVE: 0, HandlerState.WAITING: 1, HandlerState.OFFLINE: 2}


@dataclass(frozen=True, slots=True)
class Report:
    """The state of one handler, for one Configuration.

    Attributes:
        since: When it went Offline.
        problem: A sentence; None for no problem.
    """

    state: HandlerState
    since: datetime | None = None
    problem: str | None = None


def entry_of(
    node: NodeName,
    handler: str,
    reports: Collection[Report],
    problems: Collection[str] = (),
    *,
    left_out: Collection[str] = (),
) -> Mapping[str, Any] | None:
    """A node's entry in a Configuration's status; None if there is no problem.

    Args:
        node: The node.
        handler: The handler name in the Configuration.
        reports: The reports of all handlers of that name on this node; the worst state counts.
        problems: Sentences about anything but handlers.
        left_out: Sentences about devices that are not published, or not as their handler reports.
    """
    is_registered = bool(reports)
    if not reports:
        sentence = f"No discovery handler {shown(handler)} is registered."
        reports = (Report(HandlerState.WAITING, problem=sentence),)
    worst = max(reports, key=lambda report: _GRAVITY[report.state])
    reported = (*left_out, *(report.problem for report in reports if report.problem))
    message = " ".join(dict.fromkeys((*problems, *reported)))
    if worst.state is HandlerState.ACTIVE and not message:
        return None
    entry: dict[str, Any] = {
        "name": node,
        "handler": str(worst.state),
        "message": message[:LONGEST_MESSAGE],
    }
    if not is_registered:
        entry[_REGISTERED] = False
    if is_registered and reported:
        entry[_COMPLETE] = False
    if worst.since:
        entry["since"] = timestamp(worst.since)
    return entry


def unread_properties(entries: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The message of nodes that cannot read a Configuration's properties; None for none."""
    nodes = sorted(name for name, e in entries.items() if e.get(PROPERTIES_READ) is False)
    return f"{_few(nodes)}: {entries[nodes[0]].get('message', '')}" if nodes else None


def unregistered(handler: str, entries: Mapping[str, Mapping[str, Any]]) -> str | None:
    """A sentence about nodes without a handler of a Configuration's name; None for none."""
    nodes = sorted(name for name, e in entries.items() if e.get(_REGISTERED) is False)
    sentence = f"No discovery handler {shown(handler)} is registered on {_few(nodes)}."
    return sentence if nodes else None


def incomplete(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """The problems with a Configuration's devices that nodes report; "" for none.

    Nodes that see one device report the same problem, which is named once.
    """
    nodes: dict[str, list[str]] = {}
    for name, entry in sorted(entries.items()):
        if entry.get(_COMPLETE) is False:
            nodes.setdefault(entry.get("message", ""), []).append(name)
    listed = [f"{_few(names)}: {message}" for message, names in nodes.items()]
    others = sum(len(names) for names in [*nodes.values()][MOST_NODES:])
    more = [f"{others} more nodes report other problems."] if others else []
    return " ".join([*listed[:MOST_NODES], *more])


_few = partial(some_of, most=MOST_NODES)


def status_apply(
    namespace: str, name: str, uid: str, entry: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    """The body that a node applies to a Configuration's status; None removes its entry."""
    body = {
        "apiVersion": CONFIGURATIONS.api_version,
        "kind": "Configuration",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
    }
    return {**body, "status": {"nodes": [entry]}} if entry else body


def without_lost_nodes(
    entries: Mapping[str, Mapping[str, Any]], nodes: Collection[NodeName]
) -> list[Mapping[str, Any]] | None:
    """The entries of a Configuration that stay; None if all stay.

    Args:
        entries: The entries by node.
        nodes: The Nodes that exist; other nodes cannot remove their own entries.
    """
    stay = [entry for name, entry in entries.items() if name in nodes]
    return None if len(stay) == len(entries) else stay
