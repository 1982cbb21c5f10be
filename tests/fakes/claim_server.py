"""The fake API server with the policies of claims, and with disruption budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube.kinds import CLAIMS
from tests.fakes.apiserver import FakeApiServer, RefusedError

QUEUE = "moorage.dev/queue"
OWNER_POD = "moorage.dev/owner-pod"
OWNER_LEFT_AT = "moorage.dev/owner-left-at"
CLAIM = CLAIMS.at("cam", "default")


class FakeClaimServer(FakeApiServer):
    """Labels of claims never change, as the policies of tests/e2e/test_policies.py have it.

    Attributes:
        labels: Each label that was stored on a claim, in order; "" for its removal.
        budgets: The PodDisruptionBudgets that it lists; what they refuse is `protected`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[str] = []
        self.budgets: list[dict[str, Any]] = []

    def claim(self, name: str = "cam") -> dict[str, Any]:
        return self.get(CLAIMS.at(name, "default"))

    def owner(self, name: str = "cam") -> tuple[str, str]:
        """Label and owner-pod of a claim; "" for what is not there."""
        metadata = self.claim(name)["metadata"]
        return metadata["labels"].get(QUEUE, ""), metadata["annotations"].get(OWNER_POD, "")

    def _listed(self, collection: str) -> dict[str, Any]:
        found = super()._listed(collection)
        return {**found, "items": self.budgets} if "budgets" in collection else found

    def _patch(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        assert patch["metadata"].keys() >= {"uid", "resourceVersion"}, "the binder names both"
        before = self._expected(path, patch["metadata"])["metadata"]
        old = before["labels"].get(QUEUE, "")
        new = patch["metadata"].get("labels", {}).get(QUEUE, old) or ""
        if old and new not in ("", old):
            raise RefusedError(422, "Invalid", f'label "{old}" never changes')
        if old and not new and OWNER_POD not in before["annotations"]:
            raise RefusedError(422, "Invalid", f'label "{old}" was not written by the binder')
        if old != new:
            self.labels.append(new)
        return super()._patch(path, patch)
