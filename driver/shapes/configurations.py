"""The fields of a Configuration that other components than the driver read.

The driver reads all fields, see `driver.configurations`.
"""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

import msgspec

from kube.shapes.metadata import Condition, NamedMetadata


class HandlerFields(msgspec.Struct, frozen=True):
    """`spec.discoveryHandler`."""

    name: str | None = None


class ConfigurationSpec(msgspec.Struct, frozen=True, rename="camel"):
    """`spec`."""

    discovery_handler: HandlerFields | None = None
    offline_taint_effect: str | None = None


class NodeReport(msgspec.Struct, frozen=True):
    """An entry of `status.nodes`: the state of a node's handler."""

    name: str
    handler: str | None = None
    since: str | None = None
    registered: bool | None = None
    message: str | None = None


class ConfigurationStatus(msgspec.Struct, frozen=True):
    """`status`."""

    conditions: list[Condition] | None = None
    nodes: list[NodeReport] | None = None


class ConfigurationObject(msgspec.Struct, frozen=True):
    """A Configuration of `akri.sh/v0`."""

    metadata: NamedMetadata
    spec: ConfigurationSpec | None = None
    status: ConfigurationStatus | None = None

    @property
    def handler(self) -> str:
        """The name of its discovery handler; "" for none."""
        found = self.spec.discovery_handler if self.spec is not None else None
        return (found.name if found is not None else None) or ""

    @property
    def reports(self) -> list[NodeReport]:
        return (self.status.nodes if self.status is not None else None) or []

    def condition(self, kind: str) -> Condition | None:
        """The condition of this type; None for none."""
        found = (self.status.conditions if self.status is not None else None) or ()
        return next((each for each in found if each.type == kind), None)
