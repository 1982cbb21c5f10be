"""DeviceTaintRules, as the API server returns them and as the device-plugin path follows them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

from driver.shapes.instance_taints import TaintRuleIndex
from kube.shapes.reading import read_as
from kube.shapes.taint_rules import DeviceTaintRule


def a_rule_object(
    name: str = "repair", effect: str = "NoSchedule", **selector: str
) -> dict[str, Any]:
    """A rule; without a selector's fields it selects all devices."""
    return {
        "metadata": {"name": name, "uid": f"uid-of-{name}", "resourceVersion": "1"},
        "spec": {
            "deviceSelector": selector,
            "taint": {"key": "example.com/repair", "effect": effect},
        },
    }


def a_rule(name: str = "repair", effect: str = "NoSchedule", **selector: str) -> DeviceTaintRule:
    """The same, parsed."""
    return read_as(DeviceTaintRule, a_rule_object(name, effect, **selector))


class FollowedRules:
    """Rules that are followed; `have` has the watch bring others."""

    def __init__(self) -> None:
        self.rules = TaintRuleIndex()
        self.settled = asyncio.Event()
        self.settled.set()
        self.on_changed: Callable[[], object] = lambda: None

    def have(self, *rules: DeviceTaintRule) -> None:
        self.rules = TaintRuleIndex(rules)
        self.on_changed()

    async def run(self) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError("cancelled before")
