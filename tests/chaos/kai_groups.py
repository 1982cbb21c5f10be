"""PodGroups of KAI, as users make them."""

from __future__ import annotations

from tests.chaos.objects import Object

POD_GROUPS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "podgroups.scheduling.run.ai"},
    "spec": {
        "group": "scheduling.run.ai",
        "scope": "Namespaced",
        "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"},
        "versions": [
            {
                "name": "v2alpha2",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
"""KAI's PodGroups, as far as Moorage reads them."""


def group(namespace: str, name: str, least: int, owner: str) -> Object:
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"queue": owner, "minMember": least},
    }
