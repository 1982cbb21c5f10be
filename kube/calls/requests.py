"""HTTP requests of the verbs that write, and of watch; `read_requests` has those that read."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from typing import Any

from kube.calls.read_requests import JSON, Request
from kube.calls.read_requests import list_page as list_page
from kube.calls.read_requests import read as read
from kube.objects import JsonObject
from kube.resources import ObjectPath, Resource, Selection

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Options of a write.

    field_manager: the owner of the written fields; the server's default is the user agent.
    dry_run: validate and answer, store nothing.
    timeout_seconds: sent to the server as well, which then gives up what it has not begun to store.
    """

    field_manager: str = ""
    dry_run: bool = False
    timeout_seconds: float = 30.0

    @property
    def query(self) -> dict[str, str]:
        query = {
            "fieldManager": self.field_manager,
            "dryRun": "All" if self.dry_run else "",
            "timeout": f"{max(1, round(self.timeout_seconds * 1000))}ms",
        }
        return {key: text for key, text in query.items() if text}


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The write fails unless the object has this UID and this resourceVersion; "" for any."""

    uid: str = ""
    resource_version: int | str = ""

    @property
    def metadata(self) -> dict[str, str]:
        fields = {"uid": self.uid, "resourceVersion": str(self.resource_version)}
        return {key: text for key, text in fields.items() if text}


NO_PRECONDITIONS = Preconditions()
WRITE = WriteOptions()


def watch(selection: Selection, resource_version: int, seconds: int, idle: float) -> Request:
    """Request what follows a version; `idle` is the longest silence of the connection."""
    query = {
        **selection.parameters,
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": str(resource_version),
        "timeoutSeconds": str(seconds),
    }
    return Request(method="GET", url_path=selection.url_path, query=query, timeout_seconds=idle)


def create(
    resource: Resource, body: JsonObject, subresource: str, options: WriteOptions
) -> Request:
    """A subresource such as `binding` is created under the object that the body names."""
    namespace = body["metadata"].get("namespace", "")
    url_path = resource.collection_path(namespace)
    if subresource:
        url_path = resource.path_of(body, subresource).url_path
    return _write("POST", url_path, body, JSON, options)


def replace(path: ObjectPath, body: JsonObject, options: WriteOptions) -> Request:
    return _write("PUT", path.url_path, body, JSON, options)


@dataclass(frozen=True, slots=True)
class Deletion:
    """How an object is deleted.

    in_background: its dependents are deleted after it, whatever its kind does by default.
    """

    preconditions: Preconditions = NO_PRECONDITIONS
    grace_period_seconds: int | None = None
    in_background: bool = False


def delete(path: ObjectPath, how: Deletion, options: WriteOptions) -> Request:
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if how.preconditions.metadata:
        body["preconditions"] = how.preconditions.metadata
    if how.grace_period_seconds is not None:
        body["gracePeriodSeconds"] = how.grace_period_seconds
    if how.in_background:
        body["propagationPolicy"] = "Background"
    if options.dry_run:
        body["dryRun"] = ["All"]
    return _write("DELETE", path.url_path, body, JSON, options)


def patch(
    path: ObjectPath,
    body: JsonObject,
    content_type: str,
    preconditions: Preconditions,
    options: WriteOptions,
) -> Request:
    """A patch whose body is an object; `content_type` says which kind of patch."""
    return _write("PATCH", path.url_path, _guarded(body, preconditions), content_type, options)


def json_patch(
    path: ObjectPath, operations: Sequence[JsonObject], options: WriteOptions
) -> Request:
    return _write("PATCH", path.url_path, list(operations), JSON_PATCH, options)


def apply(
    path: ObjectPath,
    body: JsonObject,
    force: bool,
    preconditions: Preconditions,
    options: WriteOptions,
) -> Request:
    if not options.field_manager:
        raise ValueError("server-side apply needs a field manager")
    request = patch(path, body, APPLY_PATCH, preconditions, options)
    return replace_fields(request, query={**request.query, "force": "true"}) if force else request


def _write(
    method: str, url_path: str, body: Any, content_type: str, options: WriteOptions
) -> Request:
    return Request(
        method=method,
        url_path=url_path,
        query=options.query,
        body=body,
        content_type=content_type,
        timeout_seconds=options.timeout_seconds,
    )


def _guarded(body: JsonObject, preconditions: Preconditions) -> JsonObject:
    """The body with the preconditions in its metadata, where the server reads them."""
    if not preconditions.metadata:
        return body
    return {**body, "metadata": {**body.get("metadata", {}), **preconditions.metadata}}
