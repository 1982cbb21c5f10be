"""What the API server asks, answered: read the review, know what it is about, ask the rules."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kube.api import ApiError
from scheduler_plugin.api import (
    GROUP,
    ClaimTemplateView,
    ClaimView,
    NamespaceView,
    PodClaim,
    QueueName,
    Unreadable,
)
from webhook import claims, mutations, pods, queues, reviews
from webhook.findings import Findings, refused
from webhook.lookups import BusyError
from webhook.reviews import MalformedReviewError, Review
from webhook.surroundings import Surroundings

logger = logging.getLogger(__name__)

DRA_GROUP = "resource.k8s.io"

LOOKUP_SECONDS = 4.0
"""All reads of one review together; the API server waits for 5 seconds."""

Judge = Callable[[Review], Awaitable[Findings]]


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and a JSON body. Anything but 200 leaves it to the `failurePolicy`."""

    code: int
    body: bytes


class KnowsTheCluster(Protocol):
    """What is known, and reads of what is not; these raise ApiError and BusyError.

    See `cluster.Cluster`.
    """

    @property
    def surroundings(self) -> Surroundings: ...
    def why_not_ready(self) -> str: ...
    async def look_for_queue(self, name: QueueName, namespace: str = "") -> None: ...
    async def all_queues(self) -> None: ...
    async def namespace(self, name: str) -> NamespaceView: ...
    async def claim(self, namespace: str, name: str) -> ClaimView | None: ...
    async def template(self, namespace: str, name: str) -> ClaimTemplateView | None: ...
    async def claims_of(self, queue: QueueName) -> tuple[ClaimView, ...]: ...


class Admission:
    """Answers reviews, from memory where it can."""

    def __init__(self, cluster: KnowsTheCluster) -> None:
        self._cluster = cluster
        self._around = cluster.surroundings
        self._judges: dict[tuple[str, str, str], Judge] = {
            (DRA_GROUP, "ResourceClaim", "CREATE"): self._claim,
            (DRA_GROUP, "ResourceClaimTemplate", "CREATE"): self._template,
            ("", "Pod", "CREATE"): self._pod,
            (GROUP, "Queue", "CREATE"): self._queue,
            (GROUP, "Queue", "UPDATE"): self._changed_queue,
            (GROUP, "Queue", "DELETE"): self._deleted_queue,
        }

    def why_not_ready(self) -> str:
        return self._cluster.why_not_ready()

    async def answer(self, body: bytes) -> Answer:
        """Answer whether an object may be written; never raises."""
        return await self._answered(body, self._judged)

    async def mutate(self, body: bytes) -> Answer:
        """Answer what a new pod of a namespace that opted in lacks; never raises."""
        return await self._answered(body, self._mutated)

    async def _answered(self, body: bytes, reply: Callable[[Review], Awaitable[Answer]]) -> Answer:
        if why := self.why_not_ready():
            return _failed(503, f"The webhook of Moorage is starting. {why}")
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                return await reply(reviews.decode(body))
        except MalformedReviewError as error:
            return _failed(400, str(error))
        except BusyError as error:
            logger.warning("too much is asked: %s", error)
            return _failed(429, f"{error} Try again.")
        except (ApiError, TimeoutError) as error:
            logger.warning("cannot look up what a review is about: %s", str(error) or "slow")
            sentence = "The webhook of Moorage cannot look up what this is about; try again."
            return _failed(503, f"{sentence} {error}".rstrip())
        except Exception:
            logger.exception("a review failed")
            return _failed(500, "The webhook of Moorage failed; its log says why.")

    async def _judged(self, review: Review) -> Answer:
        judge = self._judges.get((review.kind.group, review.kind.kind, review.operation))
        subject = review.old if review.operation == "DELETE" else review.new
        if judge is None or review.sub_resource:
            sentence = f"No rule is about {review.operation} of {_what(review)}."
            return Answer(200, reviews.cannot_judge(review, sentence))
        if subject is None:
            sentence = f"A {review.operation} of {_what(review)} came without the object."
            return Answer(200, reviews.cannot_judge(review, sentence))
        return Answer(200, reviews.answer(review, await judge(review)))

    async def _mutated(self, review: Review) -> Answer:
        """Nothing is refused here: that is for who validates, once all have had their say."""
        asked = (review.kind.group, review.kind.kind, review.operation)
        if asked != ("", "Pod", "CREATE") or review.sub_resource:
            return Answer(200, reviews.edited(review, ()))
        pod = pods.new_pod(review, self._around.settings)
        if isinstance(pod, Unreadable) or not mutations.is_ours(pod, self._around):
            return Answer(200, reviews.edited(review, ()))
        found = await self._found(review.namespace, pod)
        namespace = await self._cluster.namespace(review.namespace)
        if queue := mutations.namespace_queue(namespace, self._around):
            await self._cluster.look_for_queue(queue, review.namespace)
        edits = mutations.edits(review, pod, found, namespace, self._around)
        return Answer(200, reviews.edited(review, edits))

    async def _claim(self, review: Review) -> Findings:
        queue = claims.claim_queue(review, self._around.settings.queue_label)
        if queue:
            await self._cluster.look_for_queue(queue, review.namespace)
        namespace = await self._cluster.namespace(review.namespace)
        return claims.judge_claim(review, namespace, self._around)

    async def _template(self, review: Review) -> Findings:
        queue = claims.template_queue(review, self._around.settings.queue_label)
        if queue:
            await self._cluster.look_for_queue(queue, review.namespace)
        namespace = await self._cluster.namespace(review.namespace)
        return claims.judge_template(review, namespace, self._around)

    async def _pod(self, review: Review) -> Findings:
        pod = pods.new_pod(review, self._around.settings)
        if isinstance(pod, Unreadable):
            return refused([pod.problem])
        found = await self._found(review.namespace, pod)
        if pod.queue:
            await self._cluster.look_for_queue(pod.queue, review.namespace)
        namespace = await self._cluster.namespace(review.namespace)
        return pods.judge_pod(pod, found, namespace, self._around)

    async def _found(self, namespace: str, pod: pods.NewPod) -> Sequence[pods.FoundClaim]:
        """What the pod's claims are, in the order of its spec."""
        # Nearly always the stores have them: tasks would cost more than they could save.
        return [await self._named(namespace, entry) for entry in pod.view.claims]

    async def _named(self, namespace: str, entry: PodClaim) -> pods.FoundClaim:
        if entry.template:
            return await self._cluster.template(namespace, entry.template)
        return await self._cluster.claim(namespace, entry.claim) if entry.claim else None

    async def _queue(self, review: Review) -> Findings:
        await self._cluster.look_for_queue(queues.parent_of(review.new))
        return queues.judge_written(review, self._around)

    async def _changed_queue(self, review: Review) -> Findings:
        """A move may close a cycle with queues that were made a moment ago."""
        if queues.parent_of(review.new) != queues.parent_of(review.old):
            await self._cluster.all_queues()
        return queues.judge_written(review, self._around)

    async def _deleted_queue(self, review: Review) -> Findings:
        await self._cluster.all_queues()
        owned = await self._cluster.claims_of(queues.name_of(review))
        return queues.judge_deleted(review, owned, self._around)


def _what(review: Review) -> str:
    kind = f"{review.kind.kind}.{review.kind.group}" if review.kind.group else review.kind.kind
    return f"{kind}/{review.sub_resource}" if review.sub_resource else kind


def _failed(code: int, sentence: str) -> Answer:
    return Answer(code, reviews.failure(code, sentence))
