"""The rule on pods that go together: `gangs` tries them, here stands what is said of that."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_plugin.judging.cases import Case
from scheduler_plugin.judging.named_holders import MayName
from scheduler_plugin.judging.rules.rule import Rule
from scheduler_plugin.objects.names import Reason
from scheduler_plugin.objects.pods import PodView


class PodGroupIncomplete(Rule):
    """Enough pods of the group are there. That is more than one verdict: alone a pod passes."""

    reason = Reason.POD_GROUP_INCOMPLETE
    meaning = (
        "The pod goes with others of its PodGroup, and too few of them are there, or the PodGroup"
        " is not, or the group was just given up."
    )

    def refusals(self, case: Case) -> Iterator[str]:
        return iter(())

    def passes(self, case: Case) -> str:
        return "Alone it may go."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        yield (
            "Its PodGroup goes as a whole: as many of its pods have to be there as its minMember."
        )

    def not_there(self, pod: PodView) -> str:
        return f"{pod} goes with its {group_of(pod)}, which is not there."

    def too_few(self, pod: PodView, least: int, there: int) -> str:
        return f"{as_a_whole(pod, least)}, and {there} are there."

    def given_up(self, pod: PodView, until: str) -> str:
        return (
            f"{group_of(pod)} was given up, since too few of its pods ran: it begins again at"
            f" {until}."
        )


def group_of(pod: PodView) -> str:
    return f"PodGroup {pod.namespace}/{pod.group}"


def as_a_whole(pod: PodView, pods: int) -> str:
    """How many pods go together, without the full stop."""
    return f"{group_of(pod)} goes as a whole, {pods} pods at one time"
