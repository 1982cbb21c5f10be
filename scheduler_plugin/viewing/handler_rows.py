"""Discovery handlers, as Configurations and the driver's pods tell of them.

A Configuration lists the nodes whose handler is not Active, or has a problem; on every other node
that has the driver it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from driver.shapes.configurations import ConfigurationObject
from kube.shapes.reading import JsonObject, read_as

ACTIVE, NOT_ACCEPTED, UNKNOWN = "Active", "NotAccepted", "Unknown"
OTHERS = "*"
"""All nodes that are not named, where it is not known which there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerRow:
    """What one node's handler does for one Configuration.

    Attributes:
        configuration: As namespace/name.
        node: `*` for all that have no row of their own.
        state: Active, Waiting or Offline; NotAccepted where the Configuration makes no sense,
            Unknown where no driver has said anything of it yet.
        registered: Whether a handler of its name is registered there.
        since: When it went Offline.
    """

    handler: str
    configuration: str
    node: str
    state: str
    registered: bool
    since: str = ""
    message: str = ""


def handler_rows(
    configurations: Iterable[JsonObject], driver_nodes: Collection[str]
) -> Iterator[HandlerRow]:
    """By handler, Configuration and node."""
    rows = [row for obj in configurations for row in _rows(obj, driver_nodes)]
    yield from sorted(rows, key=lambda row: (row.handler, row.configuration, row.node))


def _rows(obj: JsonObject, driver_nodes: Collection[str]) -> Iterator[HandlerRow]:
    found = read_as(ConfigurationObject, obj)
    handler, accepted = found.handler, found.condition("Accepted")
    name = f"{found.metadata.namespace}/{found.metadata.name}"
    if accepted is None or accepted.status != "True":
        yield HandlerRow(
            handler=handler,
            configuration=name,
            node=OTHERS,
            state=UNKNOWN if accepted is None else NOT_ACCEPTED,
            registered=False,
            message=(accepted.message if accepted is not None else None) or "",
        )
        return
    for report in found.reports:
        yield HandlerRow(
            handler=handler,
            configuration=name,
            node=report.name,
            state=report.handler or UNKNOWN,
            registered=report.registered is not False,
            since=report.since or "",
            message=report.message or "",
        )
    told = {report.name for report in found.reports}
    for node in sorted(set(driver_nodes) - told) if driver_nodes else (OTHERS,):
        yield HandlerRow(
            handler=handler, configuration=name, node=node, state=ACTIVE, registered=True
        )
