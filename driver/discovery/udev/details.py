"""Discovery details of the udev handler, as Akri writes them, and one field more.

udevRules: ['KERNEL=="video[0-9]*"']     # a device is found by any of them
groupRecursive: false                    # a device and those below it are one
permissions: rwm                         # of the container on the device nodes
identity: devpath                        # or serial, by-id, by-path: what a device is known by
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from driver.api import Problem
from driver.discovery.details import DETAILS, Fields, shown
from driver.discovery.udev.grammar import parse_rule
from driver.discovery.udev.identity import DEVPATH_IDENTITY, IDENTITIES
from driver.discovery.udev.rules import Rule

PERMISSIONS = ("r", "w", "m", "rw", "rm", "rwm", "wm")
"""What Akri accepts; the order of the letters counts."""


@dataclass(frozen=True, slots=True)
class UdevDetails:
    """What a Configuration asks of the udev handler.

    Attributes:
        rules: A device is found if any of them selects it.
        group_recursive: Whether a found device and those found below it are one device.
        permissions: Of the container on device nodes, as the device cgroup writes them.
        identity: One of `IDENTITIES`.
    """

    rules: tuple[Rule, ...]
    group_recursive: bool = False
    permissions: str = "rwm"
    identity: str = DEVPATH_IDENTITY


def parse_udev_details(text: str) -> UdevDetails | tuple[Problem, ...]:
    """The details, or all that is wrong with them."""
    fields = Fields(text, ("udevRules", "groupRecursive", "permissions", "identity"))
    group_recursive = fields.boolean("groupRecursive", default=False)
    permissions = fields.string("permissions", default="rwm")
    identity = fields.choice("identity", IDENTITIES, default=DEVPATH_IDENTITY)
    rules = tuple(_rules(fields))
    if permissions not in PERMISSIONS:
        sentence = f"{shown(permissions)} is none of {', '.join(PERMISSIONS)}."
        fields.problems.append(Problem(f"{DETAILS}.permissions", sentence))
    return tuple(fields.problems) or UdevDetails(rules, group_recursive, permissions, identity)


def _rules(fields: Fields) -> Iterator[Rule]:
    for text in fields.strings("udevRules"):
        rule = parse_rule(text.value)
        if isinstance(rule, Rule):
            yield rule
        else:
            fields.problems.extend(
                Problem(
                    text.path, f"{text.start}, column {flaw.column} of the string: {flaw.sentence}"
                )
                for flaw in rule
            )
