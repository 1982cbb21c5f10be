"""Settings of `kubectl moorage import`, which reads files and no cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kube.command_settings import refuse


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """What is read, and how.

    Attributes:
        files: The files; `-` is standard input.
        gpu_class: The DeviceClass of whole GPUs; "" if it is not known.
        device_classes: DeviceClasses by the resource that they stand for.
        is_strict: Whether nothing is printed if something cannot be said.
    """

    files: tuple[Path, ...]
    gpu_class: str
    device_classes: Mapping[str, str]
    is_strict: bool


def device_class_of(text: str) -> tuple[str, str]:
    """The resource and the DeviceClass of a flag; exits with a sentence if it is neither."""
    resource, _, device_class = text.partition("=")
    if not resource or not device_class:
        raise refuse(
            f"--device-class {text}: must be RESOURCE=CLASS, such as"
            " example.com/gpu=gpu.example.com."
        )
    return resource, device_class
