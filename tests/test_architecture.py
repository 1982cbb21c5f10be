"""The checkout: what is imported, how long modules are, where coroutines may be."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMPONENTS = ("driver", "scheduler_plugin", "binder", "webhook", "kube")
LONGEST_MODULE = 300
WIDEST_DOOR = 40


def modules() -> list[Path]:
    return [
        path
        for component in COMPONENTS
        for path in (ROOT / component).rglob("*.py")
        if "kubelet_api" not in path.parts
    ]


@pytest.mark.parametrize("component", COMPONENTS)
def test_components_are_imported_from_this_checkout(component: str) -> None:
    module = importlib.import_module(component)

    assert module.__file__ == str(ROOT / component / "__init__.py")


def test_no_module_grew_beyond_what_one_noun_needs() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in modules()}

    assert {str(p): n for p, n in lengths.items() if n > LONGEST_MODULE} == {}


def names_of(door: Path) -> list[str]:
    """The names that a door hands on, and those that it defines."""
    found = []
    for node in ast.parse(door.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            found += [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [target.id for target in targets if isinstance(target, ast.Name)]
    return found


@pytest.mark.parametrize("door", sorted(p for p in modules() if p.name == "api.py"), ids=str)
def test_no_door_is_wider_than_a_reader_can_see_at_once(door: Path) -> None:
    assert len(names_of(door)) <= WIDEST_DOOR


def test_an_init_holds_a_docstring_only() -> None:
    inits = [path for path in modules() if path.name == "__init__.py"]

    for path in inits:
        body = ast.parse(path.read_text()).body
        assert len(body) == 1, path
        assert ast.get_docstring(ast.parse(path.read_text())), path


@pytest.mark.parametrize("folder", ["proto", "deploy"])
def test_folders_that_are_no_packages_stay_so(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()
