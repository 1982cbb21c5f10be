"""The DeviceTaintRules whose taint keeps users away."""

from __future__ import annotations

from driver.shapes.instance_taints import TaintRuleIndex
from kube.shapes.taint_rules import DeviceTaintRule


class RepellingRules:
    """Rules by name, and an index of them that is made when it is asked for."""

    def __init__(self) -> None:
        self._rules: dict[str, DeviceTaintRule] = {}
        self._index: TaintRuleIndex | None = None

    @property
    def index(self) -> TaintRuleIndex:
        if self._index is None:
            self._index = TaintRuleIndex(self._rules.values())
        return self._index

    def put(self, rule: DeviceTaintRule) -> None:
        """Enter or replace a rule, by its name."""
        self.remove(rule.name)
        if rule.repels:
            self._rules[rule.name] = rule

    def remove(self, name: str) -> None:
        self._rules.pop(name, None)
        self._index = None
