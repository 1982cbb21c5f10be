"""Answers reviews of the API server: reads the objects that a review needs, and asks the rules."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from driver.api import AKRI_GROUP, Problem
from driver.handler_checks import HANDLER_NAMES, configuration_flaws
from kube.calls.api import ApiError
from kube.objects import JsonObject
from kube.shapes.reading import UnreadableError
from scheduler_plugin.objects.api import PodClaim
from scheduler_plugin.objects.names import GROUP
from webhook import reviews
from webhook.cluster import Cluster
from webhook.findings import NOTHING_FOUND, Findings, refused
from webhook.lookups import BusyError
from webhook.reviews import Answer, Review
from webhook.rules import claims, configurations, device_configs, mutations, pods, queues

DRA_GROUP = "resource.k8s.io"

LOOKUP_SECONDS = 4.0
"""Time-out of all reads of one review; the API server waits for 5 seconds."""

MOST_SHARERS = 5
"""How many queues of `spec.claimSharing.queues` are looked up: as many as a warning names."""

Judge = Callable[[Review], Awaitable[Findings]]


class Admission:
    """Answers reviews, from memory if possible."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._context = cluster.rule_context
        self._parsing: asyncio.Task[Sequence[Problem]] | None = None
        self._judges: dict[tuple[str, str, str], Judge] = {
            (DRA_GROUP, "ResourceClaim", "CREATE"): self._claim,
            (DRA_GROUP, "ResourceClaimTemplate", "CREATE"): self._claim,
            (DRA_GROUP, "DeviceClass", "CREATE"): self._class,
            (DRA_GROUP, "DeviceClass", "UPDATE"): self._class,
            ("", "Pod", "CREATE"): self._pod,
            (GROUP, "Queue", "CREATE"): self._queue,
            (GROUP, "Queue", "UPDATE"): self._changed_queue,
            (GROUP, "Queue", "DELETE"): self._deleted_queue,
        }

    def why_not_ready(self) -> str:
        return self._cluster.why_not_ready()

    async def validate(self, review: Review) -> Answer:
        """Answer whether an object may be written.

        Raises:
            BusyError: Too many look-ups for its namespace are in flight.
            ApiError, TimeoutError: An object that it refers to cannot be read.
        """
        judge = self._judges.get((review.kind.group, review.kind.kind, review.operation))
        subject = review.old if review.operation == "DELETE" else review.new
        if judge is None or review.sub_resource:
            sentence = f"No rule is about {review.operation} of {_what(review)}. Remove it from"
            sentence += " the webhook's registration."
            return reviews.cannot_judge(review, sentence)
        if subject is None:
            sentence = f"The review of a {review.operation} of {_what(review)} has no object."
            return reviews.cannot_judge(review, sentence)
        async with asyncio.timeout(LOOKUP_SECONDS):
            return reviews.answer(review, await judge(review))

    async def warn(self, review: Review) -> Answer:
        """Answer with warnings about a Configuration. Nothing is refused here.

        One Configuration is parsed at a time. Meanwhile, and for a long spec, the answer has no
        warnings: the condition Accepted says the same later.
        """
        asked = (review.kind.group, review.kind.kind)
        found = NOTHING_FOUND
        if asked == (AKRI_GROUP, "Configuration") and review.new and not review.sub_resource:
            found = await self._configuration(review, review.new)
        return reviews.answer(review, found)

    async def mutate(self, review: Review) -> Answer:
        """Answer with a patch of a new pod in a namespace that opted in; raises as `validate`.

        Nothing is refused here: validation follows once all webhooks have mutated the pod.
        """
        asked = (review.kind.group, review.kind.kind, review.operation)
        if asked != ("", "Pod", "CREATE") or review.sub_resource:
            return reviews.edited(review, ())
        try:
            pod = pods.new_pod(review, self._context.settings)
        except UnreadableError:  # Validation reports the error.
            return reviews.edited(review, ())
        if not mutations.is_ours(pod, self._context):
            return reviews.edited(review, ())
        async with asyncio.timeout(LOOKUP_SECONDS):
            return reviews.edited(review, await self._edits(review, pod))

    async def _edits(self, review: Review, pod: pods.NewPod) -> Sequence[reviews.Edit]:
        found = await self._found(review.namespace, pod)
        namespace = await self._cluster.namespace(review.namespace)
        if queue := mutations.namespace_queue(namespace, self._context):
            await self._cluster.look_for_queue(queue, review.namespace)
        return tuple(mutations.edits(review, pod, found, namespace, self._context))

    async def _claim(self, review: Review) -> Findings:
        queue = claims.claim_queue(review, self._context.settings.queue_label)
        if queue:
            await self._cluster.look_for_queue(queue, review.namespace)
        namespace = await self._cluster.namespace(review.namespace)
        return claims.judge_claim(review, namespace, self._context)

    async def _class(self, review: Review) -> Findings:
        return device_configs.judge_class(review)

    async def _pod(self, review: Review) -> Findings:
        try:
            pod = pods.new_pod(review, self._context.settings)
        except UnreadableError as error:
            return refused([Problem(error.path, error.message)])
        found = await self._found(review.namespace, pod)
        if pod.queue:
            await self._cluster.look_for_queue(pod.queue, review.namespace)
        namespace = await self._cluster.namespace(review.namespace)
        return pods.judge_pod(pod, found, namespace, self._context)

    async def _found(self, namespace: str, pod: pods.NewPod) -> Sequence[pods.FoundClaim]:
        """The pod's claims and templates, in the order of its spec."""
        # The stores nearly always have them: tasks would cost more than they save.
        return [await self._named(namespace, entry) for entry in pod.view.claims]

    async def _named(self, namespace: str, entry: PodClaim) -> pods.FoundClaim:
        if entry.template:
            return await self._cluster.template(namespace, entry.template)
        return await self._cluster.claim(namespace, entry.claim) if entry.claim else None

    async def _configuration(self, review: Review, body: JsonObject) -> Findings:
        if not configurations.is_to_be_judged(review):
            return NOTHING_FOUND
        # Python runs one thread at a time: while a text is parsed, reviews of pods wait.
        is_busy = self._parsing is not None and not self._parsing.done()
        if is_busy or configurations.is_too_long(review):
            return NOTHING_FOUND
        self._parsing = asyncio.create_task(asyncio.to_thread(configuration_flaws, body))
        flaws = await asyncio.shield(self._parsing)  # The thread outlives a cancelled review.
        metadata = body["metadata"]
        reported = self._cluster.reported_handlers(
            metadata.get("namespace") or review.namespace, metadata.get("name") or ""
        )
        return configurations.judge_written(review, flaws, HANDLER_NAMES, reported)

    async def _queue(self, review: Review) -> Findings:
        await self._cluster.look_for_queue(queues.parent_of(review.new))
        await self._look_for_sharers(review)
        return queues.judge_written(review, self._context)

    async def _look_for_sharers(self, review: Review) -> None:
        """Look up queues that may be new, to avoid false warnings; failures refuse nothing."""
        with suppress(ApiError, TimeoutError, BusyError):
            for name in queues.unknown_sharers(review.new, self._context)[:MOST_SHARERS]:
                await self._cluster.look_for_queue(name)

    async def _changed_queue(self, review: Review) -> Findings:
        """Judge an UPDATE. A new parent may close a cycle with queues that are not stored yet."""
        if queues.parent_of(review.new) != queues.parent_of(review.old):
            await self._cluster.all_queues()
        await self._look_for_sharers(review)
        return queues.judge_written(review, self._context)

    async def _deleted_queue(self, review: Review) -> Findings:
        await self._cluster.all_queues()
        owned = await self._cluster.claims_of(queues.name_of(review))
        return queues.judge_deleted(review, owned, self._context)


def _what(review: Review) -> str:
    kind = f"{review.kind.kind}.{review.kind.group}" if review.kind.group else review.kind.kind
    return f"{kind}/{review.sub_resource}" if review.sub_resource else kind
