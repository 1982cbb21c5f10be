"""A PodGroup whose pods come, fail and go: nobody goes before time, and nobody is left behind.

The checker keeps its own books: who is bound, and since when they have been too few. Whoever looks
keeps nothing: each look is as after a restart.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler_plugin.cleanup.owner_exits import RequeueAt
from scheduler_plugin.cleanup.stale_gangs import EvictGang, MarkStale, MarkWhole, gang_step
from scheduler_plugin.objects.names import NO_QUEUE
from scheduler_plugin.objects.pods import PodGroupView
from tests.scheduler_plugin.builders import NOW, an_allocated_claim, pod_uid, put
from tests.scheduler_plugin.cleanup.test_stale_gangs import GRACE, a_group_world, a_member

LEAST = 3


class Gang(RuleBasedStateMachine):
    """Pods of one group, and its `minMember`."""

    def __init__(self) -> None:
        super().__init__()
        self.now: datetime = NOW
        self.world = a_group_world(least=LEAST)
        self.least = LEAST
        self.count = 0
        self.bound: dict[str, bool] = {}
        self.short_since: datetime | None = None

    @rule(non_preemptible=st.booleans())
    def comes(self, *, non_preemptible: bool) -> None:
        self.count += 1
        name = f"p{self.count}"
        pod = a_member(name, non_preemptible=non_preemptible and self.count % 4 == 0)
        put(self.world, an_allocated_claim(name, name, queue="vision"), pod)
        self.bound[name] = pod.non_preemptible
        self._look()

    @precondition(lambda self: self.bound)
    @rule(data=st.data(), deleted=st.booleans())
    def goes(self, data: st.DataObject, *, deleted: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.bound)))
        pod = self.world.facts.pod(pod_uid(name))
        assert pod is not None
        if deleted:
            self.world.delete_pod(pod.uid)
        else:
            put(self.world, replace(pod, ended=True))
        del self.bound[name]
        self._look()

    @rule(least=st.integers(1, 5))
    def is_changed(self, least: int) -> None:
        self.least = least
        self.world.put_group(PodGroupView("default", "g", NO_QUEUE, least))
        self._look()

    @rule(seconds=st.sampled_from((1, 20, 59, 60, 61)))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        self._look()

    def _is_short(self) -> bool:
        return 0 < len(self.bound) < self.least and not any(self.bound.values())

    def _look(self) -> None:
        """Until there is nothing to do now."""
        self.short_since = (self.short_since or self.now) if self._is_short() else None
        for _ in range(9):
            found = gang_step(("default", "g"), self.world, self.now, GRACE)
            match found:
                case MarkStale(pods, since, _):
                    put(self.world, *(replace(pod, stale_since=since) for pod in pods))
                case MarkWhole(pods, _):
                    put(self.world, *(replace(pod, stale_since="") for pod in pods))
                case EvictGang(pods, _):
                    self._given_up({pod.name for pod in pods})
                case RequeueAt(at):
                    assert at > self.now
                    return
                case None:
                    return
        raise AssertionError("it does something for ever")

    def _given_up(self, names: set[str]) -> None:
        assert names == set(self.bound), "all that are left go"
        assert not any(self.bound.values()), "nobody goes who is not preemptible"
        assert self.short_since is not None, "nobody goes of a group that has enough"
        assert self.now - self.short_since >= GRACE, "nobody goes before time"
        for name in names:
            self.world.delete_pod(pod_uid(name))
        self.bound.clear()
        self.short_since = None

    @invariant()
    def nobody_is_left_behind(self) -> None:
        assert self.short_since is None or self.now - self.short_since < GRACE


TestGang = Gang.TestCase
TestGang.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
