"""Discovery details of the udev handler, as Akri writes them, and one field more.

udevRules: ['KERNEL=="video[0-9]*"']     # any of these selects a device
groupRecursive: false                    # true: a device and all below it are one device
permissions: rwm                         # of the container on the device nodes
identity: devpath                        # or serial, by-id, by-path: how a device is recognized
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
"""The permissions that Akri accepts; the order of the letters matters."""


@dataclass(frozen=True, slots=True)
class UdevDetails:
    """What a Configuration asks of the udev handler.

    Attributes:
        rules: A device is selected if any of them matches.
        group_recursive: Whether a selected device and the selected ones below it are one device.
        permissions: Permissions of the container on device nodes, as the device cgroup writes them.
        identity: One of `IDENTITIES`.
    """

    rules: tuple[Rule, ...]
    group_recursive: bool = False
    permissions: str = "rwm"
    identity: str = DEVPATH_IDENTITY


def parse_udev_details(text: str) -> UdevDetails | tuple[Problem, ...]:
    """The details, or every problem with them."""
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
