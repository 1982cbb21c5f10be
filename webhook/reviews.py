"""AdmissionReviews of admission.k8s.io/v1, from and to JSON."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import to_json

from webhook.findings import Findings

MOST_WARNINGS = 20
MOST_TEXT = 256
"""The API server cuts warnings beyond 256 bytes, and all of them beyond 4 KiB."""


class _Wire(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True, validate_by_name=True)


class Kind(_Wire):
    """Group, version and kind of the object, as in the webhook's registration."""

    kind: str
    group: str = ""
    version: str = ""


class User(_Wire):
    """The user who made the request to the API server."""

    groups: tuple[str, ...] = ()


class Review(_Wire):
    """The request of a review.

    Attributes:
        name: "" where the API server generates it.
        new: The new object; None for a DELETE.
        old: The stored object; None for a CREATE.
    """

    uid: str = Field(min_length=1)
    kind: Kind
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    user: User = Field(alias="userInfo", default=User())
    new: dict[str, Any] | None = Field(alias="object", default=None)
    old: dict[str, Any] | None = Field(alias="oldObject", default=None)


class AdmissionReview(_Wire):
    """A review as the API server sends it."""

    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: Review


class Response(_Wire):
    """The response of a review: whether the object is admitted, with a patch of it.

    Attributes:
        status: Why the object is not admitted.
        patch: Operations of RFC 6902, in base64.
    """

    uid: str
    allowed: bool
    status: dict[str, Any] | None = None
    warnings: list[str] | None = None
    patch_type: Literal["JSONPatch"] | None = None
    patch: str | None = None


class Answer(_Wire):
    """The answer to the API server."""

    api_version: Literal["admission.k8s.io/v1"] = "admission.k8s.io/v1"
    kind: Literal["AdmissionReview"] = "AdmissionReview"
    response: Response


@dataclass(frozen=True, slots=True)
class Edit:
    """A new value of a field of the reviewed object.

    Attributes:
        path: The field's path, such as `spec.schedulerName`; no key in it has a dot.
    """

    path: str
    value: Any


def part(body: Mapping[str, Any] | None, *fields: str) -> Any:
    """The value of nested fields of an object; {} if there is none."""
    found: Any = body
    for field in fields:
        found = (found or {}).get(field)
    return found or {}


def answer(review: Review, findings: Findings) -> Answer:
    """The answer for these findings, each problem with its field."""
    status = _status(review, findings) if findings.problems else None
    warnings = [cut(text) for text in findings.warnings[:MOST_WARNINGS]] or None
    allowed = not findings.problems
    return Answer(
        response=Response(uid=review.uid, allowed=allowed, status=status, warnings=warnings)
    )


def edited(review: Review, edits: Sequence[Edit]) -> Answer:
    """The answer with a JSON patch (RFC 6902): `add` replaces an existing value."""
    if not edits:
        return Answer(response=Response(uid=review.uid, allowed=True))
    operations = [
        {"op": "add", "path": f"/{edit.path.replace('.', '/')}", "value": edit.value}
        for edit in edits
    ]
    patch = b64encode(to_json(operations)).decode()
    response = Response(uid=review.uid, allowed=True, patch_type="JSONPatch", patch=patch)
    return Answer(response=response)


def cannot_judge(review: Review, sentence: str) -> Answer:
    """The answer for a review that no rule is about."""
    status = {"status": "Failure", "code": 400, "reason": "BadRequest", "message": sentence}
    return Answer(response=Response(uid=review.uid, allowed=False, status=status))


def failure(code: int, sentence: str) -> dict[str, Any]:
    """The `Status` if the review cannot be answered; users see its message."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return {**status, "message": sentence}


def cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 3]}..."


def _status(review: Review, findings: Findings) -> dict[str, Any]:
    """A `Status` as the API server's own for an invalid object: kubectl shows each problem."""
    causes = [
        {"reason": "FieldValueInvalid", "message": problem.message, "field": problem.path}
        for problem in findings.problems
    ]
    return {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": " ".join(str(problem) for problem in findings.problems),
        "details": {
            "name": review.name,
            "group": review.kind.group,
            "kind": review.kind.kind,
            "causes": causes,
        },
    }
