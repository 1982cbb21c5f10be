"""An API server that knows tokens, and who may list what."""

from __future__ import annotations

from typing import Any

from kube.calls.api import UnavailableError
from kube.objects import JsonObject
from kube.resources import Resource
from scheduler_plugin.dashboard.apiserver_reviews import TOKEN_REVIEWS

EVERYTHING = "*"


class FakeReviewer:
    """Knows viewers, whose tokens are their names.

    Each may list the resources said, those of one namespace as `<resource>/<namespace>`.
    """

    def __init__(self, **may: set[str]) -> None:
        self.may = may
        self.asked: list[str] = []
        self.away = False

    async def create(self, resource: Resource, body: JsonObject, **_: Any) -> JsonObject:
        """A review."""
        self.asked.append(resource.plural)
        if self.away:
            raise UnavailableError("no connection")
        spec = body["spec"]
        if resource == TOKEN_REVIEWS:
            name = spec["token"]
            known = name in self.may
            user = {"username": name, "groups": ["system:authenticated"]} if known else {}
            return {"status": {"authenticated": known, "user": user}}
        wanted = spec["resourceAttributes"]
        allowed = self.may[spec["user"]]
        names = {EVERYTHING, wanted["resource"], f"{wanted['resource']}/{wanted['namespace']}"}
        return {"status": {"allowed": bool(names & allowed)}}
