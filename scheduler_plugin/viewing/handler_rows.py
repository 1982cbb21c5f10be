"""Discovery handlers, as reported by Configurations and by the driver's pods.

A Configuration lists the nodes whose handler is not Active or has a problem; on all other nodes
with the driver it is Active.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from driver.shapes.configurations import ConfigurationObject
from kube.shapes.reading import JsonObject, read_as

ACTIVE, NOT_ACCEPTED, UNKNOWN = "Active", "NotAccepted", "Unknown"
OTHERS = "*"
"""All other nodes, if the nodes of the driver are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerRow:
    """The handler of one node for one Configuration.

    Attributes:
        configuration: The Configuration as namespace/name.
        node: The node; `*` for all nodes without a row of their own.
        state: Active, Waiting or Offline; NotAccepted if the Configuration is not valid, Unknown
            if no driver has reported yet.
        registered: Whether a handler of this name is registered on the node.
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
    """The rows, sorted by handler, Configuration and node."""
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
    reported = {report.name for report in found.reports}
    for node in sorted(set(driver_nodes) - reported) if driver_nodes else (OTHERS,):
        yield HandlerRow(
            handler=handler, configuration=name, node=node, state=ACTIVE, registered=True
        )
