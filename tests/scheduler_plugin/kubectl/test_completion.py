"""What kubectl is told when somebody presses Tab."""

from __future__ import annotations

import pytest

from scheduler_plugin.kubectl.completion import FILES, NO_FILES, completions


def names(kind: str, namespace: str) -> list[str]:
    return {
        "queues": ["vision", "robots"],
        "pods": [f"pod-of-{namespace}"],
        "claims": [f"claim-of-{namespace}"],
        "namespaces": ["default", "team"],
        "devices": ["cam-1"],
    }[kind]


@pytest.mark.parametrize(
    ("words", "found", "directive"),
    [
        (["charge", ""], ["vision", "robots"], NO_FILES),
        (["charge", "v"], ["vision"], NO_FILES),
        (["why", ""], ["pod-of-"], NO_FILES),
        (["why", "-n", "team", ""], ["pod-of-team"], NO_FILES),
        (["why", "--namespace=team", ""], ["pod-of-team"], NO_FILES),
        (["why", "-n", "t"], ["team"], NO_FILES),
        (["simulate", "--without-device", ""], ["cam-1"], NO_FILES),
        (["simulate", "--pod", ""], [], FILES),
        (["queues", "-o", ""], ["table", "wide", "json", "yaml"], NO_FILES),
        (["queues", "--output", "j"], ["json"], NO_FILES),
        (["queues", ""], ["vision", "robots"], NO_FILES),
        (["queues", "vision", "r"], ["robots"], NO_FILES),
        (["claims", "-n", "team", ""], ["claim-of-team"], NO_FILES),
        (["claims", "-A", ""], ["claim-of-"], NO_FILES),
        (["devices", ""], ["cam-1"], NO_FILES),
        (["handlers", ""], [], NO_FILES),
        (["-n", "t"], ["team"], NO_FILES),
        (["-n", "team", "why", ""], ["pod-of-team"], NO_FILES),
        (["-n", "team", "charge", "v"], ["vision"], NO_FILES),
        (["snapshot", ""], [], FILES),
        (["import", ""], [], FILES),
        (["nonsense", ""], [], NO_FILES),
    ],
)
def test_what_may_come_next(words: list[str], found: list[str], directive: int) -> None:
    assert completions(words, names) == (found, directive)


def test_commands_and_flags_come_with_what_they_mean() -> None:
    commands, _ = completions(["s"], names)
    flags, _ = completions(["why", "--s"], names)

    assert [line.partition("\t")[0] for line in commands] == ["simulate", "snapshot"]
    assert flags == ["--snapshot\tRead this snapshot in place of a cluster (default: the cluster)."]
    assert completions([], names)[0]
    assert completions(["-n", "team", "s"], names)[0] == commands
    assert completions(["queues", "--n"], names)[0] == [], "it has no namespace"
