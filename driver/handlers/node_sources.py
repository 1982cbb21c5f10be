"""The sources of a node: its embedded and its external handlers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from driver.api import Configuration, ConfigurationName
from driver.discovery.handlers import HANDLER_NAMES, Handlers
from driver.handlers.external_handlers import ExternalHandlers
from driver.handlers.handler_sources import EmbeddedSource, Source
from driver.handlers.registrations import HandlerStanding, HandlerState
from driver.handlers.status_entries import Report


class NodeSources:
    """See `handler_sources.Sources`; an embedded and an external handler may have one name."""

    def __init__(self, embedded: Handlers, external: ExternalHandlers) -> None:
        self._embedded = embedded
        self._external = external
        self._named: frozenset[str] = frozenset()

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` when handlers come, go, or change their state."""
        self._external.on_change(listener)

    def of(self, handler: str) -> tuple[Source, ...]:
        external = self._external.of(handler)
        if handler in self._embedded:
            return (EmbeddedSource(self._embedded.named(handler)), *external)
        return tuple(external)

    def was_removed(self, handler: str) -> bool:
        return handler in self._external.table.removed

    def use(self, configurations: Iterable[Configuration]) -> None:
        """Set the current Configurations."""
        configurations = tuple(configurations)
        self._named = frozenset(c.handler for c in configurations)
        self._external.use({c.name: c.handler for c in configurations})

    def standings(self) -> Iterable[HandlerStanding]:
        """The states of all handlers; an embedded one is Active while a Configuration names it."""
        for name in (name for name in HANDLER_NAMES if name in self._embedded):
            is_named = name in self._named
            state = HandlerState.ACTIVE if is_named else HandlerState.WAITING
            yield HandlerStanding(name, True, state)
        for external in self._external.table:
            yield HandlerStanding(external.endpoint.name, False, external.state)

    def reports(self, handler: str, name: ConfigurationName) -> tuple[Report, ...]:
        """The reports of the handlers of a name for a Configuration."""
        external = tuple(self._external.reports(handler, name))
        if handler not in self._embedded:
            return external
        problem = self._embedded.named(handler).problem
        return (Report(HandlerState.ACTIVE, problem=problem), *external)
