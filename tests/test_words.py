"""Identifiers are in the words of client-go, Kueue, KAI, kube-scheduler and the kubelet.

A reader who knows these projects should meet no word of Moorage's own for a thing that has a name
there. `SAY` lists such words, each with the word to say instead. It is an example of the direction,
not the whole language.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMPONENTS = ("driver", "scheduler_plugin", "binder", "webhook", "kube")
GENERATED = ("_pb2", "_pb2_grpc")

SAY = {
    # Waiting and admission.
    "blockade": "inadmissible, blocked",
    "blockades": "inadmissible, blocked",
    "bottleneck": "limiting queue, limiting quota",
    "bottlenecks": "limiting queues, limiting quotas",
    "signature": "equivalence class, equivalence hash",
    "signatures": "equivalence classes, equivalence hashes",
    "turns": "order, cycles, heads",
    "rounds": "cycles",
    "agenda": "queue, work queue",
    "rests": "backoff, requeues",
    "resting": "backing off, backoff",
    "stepped": "steps, steps that yield",
    "result_of": "last, run to the end",
    # Preemption and fair sharing.
    "asker": "preemptor",
    "askers": "preemptors",
    "seeker": "preemptor, request",
    "seekers": "preemptors, requests",
    "nobody": "none, no candidates, no targets",
    "somebody": "the subject itself, such as pod, user, holder",
    "whoever": "the subject itself, such as pod, user, holder",
    "shorn": "below nominal, below quota",
    "surplus": "above nominal, above share",
    # Events, logs and conditions.
    "told": "reported, recorded, logged",
    "untold": "unreported, conditions to write",
    "tells": "reports, records, logs",
    "teller": "recorder, reporter",
    "tellers": "recorders, reporters",
    "notices": "events",
    "given_notice": "event",
    # Devices and objects that leave.
    "sight": "device view, observation",
    "whereabouts": "device locator, location",
    "former_place": "previous location",
    "away": "offline, absent, assumed, in flight",
    "going": "terminating",
    "left_overs": "stale, orphans",
    "leftovers": "stale, orphans",
    "upkeep": "cleanup, reconciliation",
    "keeping": "cleanup, reconciliation",
    "believe": "restore, assume, trust",
    "believes": "restores, assumes, trusts",
}
"""A word, or several joined by underscores, and the words of the field."""

ONLY_IN = {
    "signature": ("scheduler_plugin", "binder"),
    "signatures": ("scheduler_plugin", "binder"),
    "surplus": ("scheduler_plugin", "binder"),
}
"""Words that mean another thing elsewhere: a signature of a file, a surplus of properties."""

_WHY_JSON = "a key of the JSON that `kubectl moorage why` prints"
ALLOWED: dict[str, str] = {
    "scheduler_plugin.asking.shown_pods told": _WHY_JSON,
    "scheduler_plugin.asking.tables told": _WHY_JSON,
    "scheduler_plugin.viewing.why told": _WHY_JSON,
}
"""Modules and their identifiers that keep such a word, each with the reason."""

WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def modules() -> Iterator[tuple[str, Path]]:
    """Dotted name and file of every module that is not generated."""
    for component in COMPONENTS:
        for path in sorted((ROOT / component).rglob("*.py")):
            if not path.stem.endswith(GENERATED):
                parts = path.relative_to(ROOT).with_suffix("").parts
                yield ".".join(parts).removesuffix(".__init__"), path


def identifiers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names of classes, functions, arguments, attributes and constants, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno
        if isinstance(node, ast.arg):
            yield node.arg, node.lineno
        if isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        if isinstance(node, ast.ClassDef | ast.Module):
            yield from _assigned(node)


def _assigned(node: ast.ClassDef | ast.Module) -> Iterator[tuple[str, int]]:
    """Names that the body of a class or a module binds."""
    for statement in node.body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        for target in targets:
            for found in ast.walk(target):
                if isinstance(found, ast.Name):
                    yield found.id, found.lineno


def words(name: str) -> str:
    """The words of a name in lower case, each between underscores: `_give_n_` of `GiveN`."""
    return "".join(f"_{word.lower()}" for word in WORD.findall(name)) + "_"


def faults(name: str, component: str = "scheduler_plugin") -> Iterator[tuple[str, str]]:
    """Words of a name that are not the field's, each with the words to say instead."""
    found = words(name)
    for word, say in SAY.items():
        if f"_{word}_" in found and component in ONLY_IN.get(word, COMPONENTS):
            yield word, say


def failures(module: str, source: str) -> Iterator[str]:
    """A line for each identifier of a module that has such a word, and for the module itself."""
    component = module.partition(".")[0]
    for _, say in faults(module.rpartition(".")[2], component):
        yield f"{module}: the module's own name: say {say}"
    seen: set[str] = set()
    for name, line in identifiers(ast.parse(source)):
        if name not in seen and f"{module} {name}" not in ALLOWED:
            seen.add(name)
            yield from (f"{module}:{line}: {name}: say {say}" for _, say in faults(name, component))


@pytest.mark.parametrize("component", COMPONENTS)
def test_identifiers_are_in_the_words_of_the_field(component: str) -> None:
    found = [
        line
        for name, path in modules()
        if name.partition(".")[0] == component
        for line in failures(name, path.read_text())
    ]

    assert not found, "\n".join(["", *found])


def test_exceptions_are_needed() -> None:
    used = {
        f"{module} {name}"
        for module, path in modules()
        for name, _ in identifiers(ast.parse(path.read_text()))
    }

    assert [name for name in ALLOWED if name not in used] == []
    assert all(ALLOWED.values()), "each with a reason"


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("_told", "told"),
        ("UntoldPods", "untold"),
        ("AwayPods", "away"),
        ("FormerPlace", "former_place"),
        ("left_overs_of", "left_overs"),
        ("TURNS", "turns"),
        ("given_notice", "given_notice"),
    ],
)
def test_a_word_is_found_in_a_name(name: str, word: str) -> None:
    assert word in dict(faults(name))


def test_a_word_may_mean_another_thing_elsewhere() -> None:
    assert list(faults("signature", "driver")) == []
    assert list(faults("signature", "binder"))


@pytest.mark.parametrize("name", ["returns", "threshold", "Insight", "runaway", "ongoing", "rest"])
def test_a_part_of_another_word_is_none(name: str) -> None:
    assert list(faults(name)) == []


@pytest.mark.parametrize(
    "source",
    [
        "class Teller: ...",
        "def tells(): ...",
        "async def tells(): ...",
        "def f(told): ...",
        "x.told",
        "TOLD: int = 1",
        "class A:\n    told, said = 1, 2",
    ],
)
def test_every_kind_of_identifier_is_read(source: str) -> None:
    assert list(failures("kube.a", source))


def test_locals_and_texts_are_not_read() -> None:
    assert list(failures("kube.a", "def f():\n    told = 'nobody tells'\n    return told")) == []
