"""The rule on PodGroups: its sentences; `gangs` has the decision."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_plugin.judging.cases import Case
from scheduler_plugin.judging.named_holders import MayName
from scheduler_plugin.judging.rules.rule import Rule
from scheduler_plugin.objects.names import Reason
from scheduler_plugin.objects.pods import PodView


class PodGroupIncomplete(Rule):
    """The group has enough pods. The rule never refuses a single pod; `gangs` does."""

    reason = Reason.POD_GROUP_INCOMPLETE
    meaning = (
        "The pod is admitted only with others of its PodGroup, and the group has too few pods, or"
        " does not exist, or was just evicted."
    )

    def refusals(self, case: Case) -> Iterator[str]:
        return iter(())

    def why_satisfied(self, case: Case) -> str:
        return "It may be admitted alone."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        yield ("Its PodGroup is admitted as a whole: it must have as many pods as its minMember.")

    def not_there(self, pod: PodView) -> str:
        return f"{pod} is admitted only with its {group_of(pod)}, which does not exist."

    def too_few(self, pod: PodView, least: int, there: int) -> str:
        return f"{as_a_whole(pod, least)}, and has {there}."

    def given_up(self, pod: PodView, until: str) -> str:
        return (
            f"{group_of(pod)} was evicted, since too few of its pods ran: it may be admitted again"
            f" at {until}."
        )


def group_of(pod: PodView) -> str:
    return f"PodGroup {pod.namespace}/{pod.group}"


def as_a_whole(pod: PodView, pods: int) -> str:
    """How many pods are admitted together, without the full stop."""
    return f"{group_of(pod)} is admitted as a whole, {pods} pods together"
