"""All that a node has to report of discovery: from its handlers, and on what they are given."""

from __future__ import annotations

from collections.abc import Callable

from driver.api import Configuration, ConfigurationName
from driver.apiserver_properties import NodeProperties
from driver.handler_reports import Report
from driver.node_sources import NodeSources


class NodeReports:
    """See `node_handlers.Reporter`."""

    def __init__(self, sources: NodeSources, properties: NodeProperties) -> None:
        self._sources = sources
        self._properties = properties

    def on_change(self, listener: Callable[[], None]) -> None:
        self._sources.on_change(listener)
        self._properties.on_change(listener)

    def reports(self, handler: str, name: ConfigurationName) -> tuple[Report, ...]:
        return self._sources.reports(handler, name)

    def problems(self, configuration: Configuration) -> tuple[str, ...]:
        return self._properties.problems(configuration)
