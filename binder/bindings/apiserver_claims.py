"""Writes claims to the API server; the binder writes them nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from binder.bindings.claim_writes import (
    NO_OWNER,
    ClaimState,
    OwnerMarks,
    annotation_patch,
    claim_state,
    cleared_status,
    has_users_label,
    is_as_judged,
    marks_patch,
    may_be_rolled_back,
    steps,
)
from kube.calls.api import (
    ApiClient,
    ApiError,
    ConflictError,
    NotFoundError,
    Preconditions,
    RetryableError,
    WriteOptions,
)
from kube.kinds import CLAIMS
from kube.objects import JsonObject
from kube.resources import ObjectPath
from scheduler_plugin.cleanup.api import ChargeNote, ClaimCleared, OwnerExitTime
from scheduler_plugin.objects.api import (
    BindFailed,
    ClaimOwner,
    ClaimsChanged,
    Fence,
    FencedError,
    check_fence,
)
from scheduler_plugin.objects.names import ClaimUid


@dataclass(frozen=True, slots=True)
class ClaimWriter:
    """Writes claims. Each write is fenced, has a time limit, and UID and version as preconditions.

    Attributes:
        queue_label: The key of the queue label; a setting.
        note_claim: Called with each claim that the API server returns.
        write_seconds: How long one call may take.
    """

    client: ApiClient
    fence: Fence
    _: KW_ONLY
    queue_label: str
    note_claim: Callable[[JsonObject], None]
    write_seconds: float
    _clearing: dict[ClaimUid, float] = field(default_factory=dict)

    def is_clearing(self, claim: ClaimUid) -> bool:
        """Whether a write that releases the claim was sent, and its outcome is not known yet."""
        return _now() < self._clearing.get(claim, float("-inf"))

    async def set_owner(self, claim: ClaimOwner) -> ClaimsChanged | BindFailed | None:
        """Write the owner of a claim; None once the claim has it."""
        if steps(claim) and has_users_label(claim):
            return BindFailed(_users_label(claim), is_certain=True)
        try:
            await self.write_owner(claim)
        except (ConflictError, NotFoundError):
            return ClaimsChanged(claim)
        except (ApiError, FencedError) as error:
            return BindFailed(f"{_name(claim)}: {error}", is_certain=not _is_unknown(error))
        return None

    async def write_owner(self, claim: ClaimOwner) -> None:
        """Write the owner of a claim that no user labelled; raises as `remove_owner` does."""
        version = claim.resource_version
        for marks in steps(claim):
            state = await self._mark(claim, marks, version)
            version = state.resource_version

    async def roll_back(self, claim: ClaimOwner, pod: str) -> None:
        """Remove the owner that was written for a pod that was not bound, unless another uses it.

        Raises:
            ApiError, FencedError: The owner may still be on the claim.
        """
        try:
            state = await self._read(claim)
            if may_be_rolled_back(state, claim, pod):
                await self.remove_owner(path_of(claim), claim.uid, state.resource_version)
        except NotFoundError:
            return

    async def remove_owner(self, path: ObjectPath, uid: str, version: str) -> None:
        """Remove label and annotations of a claim that has this version.

        Raises:
            ConflictError, NotFoundError: The claim has another version, or was deleted.
            ApiError, FencedError: The owner may still be on the claim.
        """
        await self._patch(path, NO_OWNER, Preconditions(uid, version))

    async def annotate(self, written: OwnerExitTime | ChargeNote, annotation: str) -> None:
        """Write an annotation, or remove it; raises as `remove_owner` does."""
        path = CLAIMS.at(written.name, written.namespace)
        preconditions = Preconditions(written.uid, written.resource_version)
        await self._send(path, annotation_patch(annotation, written.value), preconditions)

    async def clear(self, cleared: ClaimCleared, is_due: Callable[[], bool]) -> None:
        """Remove finished consumers from a claim, and the allocation with the last of them.

        Raises as `remove_owner` does.

        Args:
            cleared: What to remove.
            is_due: Asked once more right before the write. Pods of a PodGroup that the claim is
                reserved for already leave no trace on it, so its version tells nothing of them.
        """
        path = CLAIMS.at(cleared.name, cleared.namespace)
        obj = await self.client.get(path, timeout_seconds=self.write_seconds / 2)
        self.note_claim(obj)
        if not (is_as_judged(obj, cleared) and is_due()):
            what = f"ResourceClaim {cleared.namespace}/{cleared.name}"
            raise ConflictError(
                f"{what} does not have version {cleared.resource_version}, or is used again."
            )
        path = CLAIMS.at(cleared.name, cleared.namespace, subresource="status")
        preconditions = Preconditions(cleared.uid, cleared.resource_version)
        # The server ends a write that is late as well.
        self._clearing[cleared.uid] = _now() + 2 * self.write_seconds
        try:
            await self._send(path, cleared_status(obj, cleared), preconditions)
        except (ApiError, FencedError) as error:
            if not _is_unknown(error):
                del self._clearing[cleared.uid]
            raise
        del self._clearing[cleared.uid]

    async def _mark(self, claim: ClaimOwner, marks: OwnerMarks, version: str) -> ClaimState:
        """Write these marks; if the answer is lost, read whether the claim has them."""
        try:
            return await self._patch(path_of(claim), marks, Preconditions(claim.uid, version))
        except RetryableError as error:
            if not error.may_have_happened:
                raise
            state = await self._read(claim)
            if state.uid != claim.uid:
                raise ConflictError(f"{_name(claim)} was replaced by another claim.") from error
            if state.marks != marks:
                raise
            return state

    async def _patch(
        self, path: ObjectPath, marks: OwnerMarks, preconditions: Preconditions
    ) -> ClaimState:
        return await self._send(path, marks_patch(marks, self.queue_label), preconditions)

    async def _send(
        self, path: ObjectPath, patch: JsonObject, preconditions: Preconditions
    ) -> ClaimState:
        check_fence(self.fence, self.write_seconds)
        options = WriteOptions(timeout_seconds=self.write_seconds)
        answer = await self.client.merge_patch(
            path, patch, preconditions=preconditions, options=options
        )
        return self._noted(answer)

    async def _read(self, claim: ClaimOwner) -> ClaimState:
        path = path_of(claim)
        return self._noted(await self.client.get(path, timeout_seconds=self.write_seconds / 2))

    def _noted(self, answer: JsonObject) -> ClaimState:
        self.note_claim(answer)
        return claim_state(answer, self.queue_label)


def _now() -> float:
    return asyncio.get_running_loop().time()


def path_of(claim: ClaimOwner) -> ObjectPath:
    return CLAIMS.at(claim.name, claim.namespace)


def _is_unknown(error: Exception) -> bool:
    return isinstance(error, ApiError) and error.may_have_happened


def _name(claim: ClaimOwner) -> str:
    return f"ResourceClaim {claim.namespace}/{claim.name}"


def _users_label(claim: ClaimOwner) -> str:
    return f'{_name(claim)} was created for queue "{claim.label_found}", which remains its owner.'
