"""AdmissionReviews of admission.k8s.io/v1, from JSON and back into it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from webhook.findings import Findings

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"

MOST_WARNINGS = 20
MOST_TEXT = 256
"""The API server cuts warnings beyond 256 bytes, and all of them beyond 4 KiB."""


class MalformedReviewError(ValueError):
    """Raised when a body is no review that could be answered; the text is for the caller."""


class Kind(msgspec.Struct, frozen=True):
    """Group, version and kind of the object, as the webhook is registered for it."""

    kind: str
    group: str = ""
    version: str = ""


class User(msgspec.Struct, frozen=True):
    """Who asks the API server."""

    username: str = ""
    groups: tuple[str, ...] = ()


class Review(msgspec.Struct, frozen=True, rename="camel"):
    """The request of a review.

    Attributes:
        name: "" where the API server generates it.
        new: The object as it shall be; None for a DELETE.
        old: The object as it is; None for a CREATE.
    """

    uid: str
    kind: Kind
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    user: User = msgspec.field(name="userInfo", default=User())
    new: dict[str, Any] | None = msgspec.field(name="object", default=None)
    old: dict[str, Any] | None = msgspec.field(name="oldObject", default=None)


@dataclass(frozen=True, slots=True)
class Edit:
    """A field of the reviewed object, and what is to stand there from now on.

    Attributes:
        path: Of the field, such as `spec.schedulerName`; no key in it has a dot.
    """

    path: str
    value: Any


class _Envelope(msgspec.Struct, rename="camel"):
    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: Review


_DECODER = msgspec.json.Decoder(_Envelope)


def decode(body: bytes) -> Review:
    """The request of a review.

    Raises:
        MalformedReviewError: The body is not JSON, no review, or lacks what an answer needs.
    """
    try:
        review = _DECODER.decode(body).request
    except msgspec.MsgspecError as error:
        raise MalformedReviewError(f"This is no {KIND} of {API_VERSION}: {error}.") from error
    except UnicodeDecodeError as error:
        raise MalformedReviewError("This is not JSON: its strings are not UTF-8.") from error
    except RecursionError as error:
        raise MalformedReviewError("This JSON is nested too deeply.") from error
    if not review.uid:
        raise MalformedReviewError("`request.uid` is empty: there is nothing to answer to.")
    return review


def answer(review: Review, findings: Findings) -> bytes:
    """The review that goes back: what was found, every problem with its field."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": not findings.problems}
    if findings.problems:
        response["status"] = _status(review, findings)
    if findings.warnings:
        response["warnings"] = [cut(text) for text in findings.warnings[:MOST_WARNINGS]]
    return _encode(response)


def edited(review: Review, edits: Sequence[Edit]) -> bytes:
    """The review that goes back with a JSON patch (RFC 6902): `add` replaces what is there."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": True}
    if edits:
        patch = [
            {"op": "add", "path": f"/{edit.path.replace('.', '/')}", "value": edit.value}
            for edit in edits
        ]
        response["patchType"] = "JSONPatch"
        response["patch"] = b64encode(msgspec.json.encode(patch)).decode()
    return _encode(response)


def cannot_judge(review: Review, sentence: str) -> bytes:
    """The review that goes back for an object that no rule is about."""
    status = {"status": "Failure", "code": 400, "reason": "BadRequest", "message": sentence}
    return _encode({"uid": review.uid, "allowed": False, "status": status})


def failure(code: int, sentence: str) -> bytes:
    """The `Status` that goes back where no review can be answered; users get to see it."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return msgspec.json.encode({**status, "message": sentence})


def cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 3]}..."


def _encode(response: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _status(review: Review, findings: Findings) -> dict[str, Any]:
    """As the API server itself refuses an invalid object, so that kubectl shows each problem."""
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
