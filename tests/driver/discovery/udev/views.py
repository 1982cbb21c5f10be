"""A device as rules see it, without sysfs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from driver.discovery.udev.rules import InDoubtError


@dataclass(frozen=True)
class FakeDevice:
    """Answers from its fields and keeps count of the attributes that were read.

    Attributes:
        aliases: Paths that lead to its node.
        in_doubt: Whether its properties are the kernel's, and udevd's are not to be believed.
    """

    path: str = "/devices/virtual/block/loop7"
    subsystem: str | None = "block"
    driver: str | None = None
    node: str | None = None
    parent: FakeDevice | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    in_doubt: bool = False
    aliases: tuple[str, ...] = ()
    reads: list[str] = field(default_factory=list, compare=False)

    @property
    def sys_name(self) -> str:
        return self.path.rsplit("/", 1)[-1].replace("!", "/")

    def attribute(self, name: str) -> str | None:
        self.reads.append(name)
        return self.attributes.get(name)

    def property(self, name: str) -> str | None:
        if self.in_doubt and name not in self.properties:
            raise InDoubtError(self.path)
        return self.properties.get(name)

    def link(self, name: str) -> str | None:
        return self.links.get(name)

    def is_at(self, path: str) -> bool:
        return path in (self.node, *self.aliases)
