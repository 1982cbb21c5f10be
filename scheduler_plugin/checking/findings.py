"""All findings about an installation, and how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from scheduler_plugin.checking.classes import judge_classes, judge_drivers
from scheduler_plugin.checking.definitions import judge_definitions
from scheduler_plugin.checking.entries import judge_entries
from scheduler_plugin.checking.guards import judge_policies, judge_webhook
from scheduler_plugin.checking.rivals import judge_rivals
from scheduler_plugin.checking.schedulers import (
    judge_clocks,
    judge_configuration,
    judge_groups,
    judge_lease,
    judge_version,
)
from scheduler_plugin.checking.setups import Finding, Level, Setup
from scheduler_plugin.checking.workloads import (
    judge_daemon_sets,
    judge_permissions,
    judge_pods,
    judge_queues,
)

RULES = (
    judge_version,
    judge_groups,
    judge_definitions,
    judge_policies,
    judge_webhook,
    judge_permissions,
    judge_pods,
    judge_daemon_sets,
    judge_lease,
    judge_rivals,
    judge_configuration,
    judge_clocks,
    judge_queues,
    judge_entries,
    judge_classes,
    judge_drivers,
)


def findings_of(setup: Setup) -> tuple[Finding, ...]:
    """The findings of all rules, part by part."""
    return tuple(finding for rule in RULES for finding in rule(setup))


def is_whole(findings: Sequence[Finding]) -> bool:
    """Whether no finding is an error; warnings are allowed."""
    return not any(finding.level is Level.ERROR for finding in findings)


def as_text(findings: Sequence[Finding]) -> str:
    """One line for each finding, and below it what to do."""
    lines = []
    for finding in findings:
        lines.append(f"{finding.level:8} {finding.part:12} {finding.said}")
        if finding.mend:
            lines.append(f"{'':21} -> {finding.mend}")
    return "\n".join(lines) + "\n"


def as_objects(findings: Sequence[Finding]) -> list[dict[str, str]]:
    """The findings as objects for JSON."""
    return [asdict(finding) for finding in findings]
