"""Texts as users write them, translated, and read back as a user's `kubectl apply` would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from scheduler_plugin.importing.api import Translation, translated
from scheduler_plugin.models import QueueModel

GPU_CLASS = "gpu.example.com"

Specs = dict[str, dict[str, Any]]


def of(*texts: str, given: Mapping[str, str] | None = None, gpu_class: str = "") -> Translation:
    """The translation of the documents of some files."""
    documents = [each for text in texts for each in yaml.safe_load_all(text)]
    return translated(documents, given or {}, gpu_class)


def specs(found: Translation) -> Specs:
    """The specs by name, of what was printed, read again, and accepted by the Queue's model."""
    printed = yaml.safe_dump_all(found.queues, sort_keys=False)
    queues = list(yaml.safe_load_all(printed))
    assert queues == list(found.queues)
    for queue in queues:
        assert (queue["apiVersion"], queue["kind"]) == ("moorage.dev/v1alpha1", "Queue")
        QueueModel.model_validate(queue)
    return {queue["metadata"]["name"]: queue["spec"] for queue in queues}


def entries(found: Translation, queue: str) -> list[dict[str, Any]]:
    """The entries of a Queue."""
    resources: list[dict[str, Any]] = specs(found)[queue]["resources"]
    return resources


def said(found: Translation) -> list[str]:
    """What is reported: the object and its fields, without the sentence."""
    return [f"{each.about} {' '.join(each.paths)}".rstrip() for each in found.findings]


def sentence(found: Translation, about: str, path: str) -> str:
    """The sentence about one field."""
    (only,) = [
        each.sentence for each in found.findings if each.about == about and path in each.paths
    ]
    return only
