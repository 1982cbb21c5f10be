"""The checker is nobody's echo: it imports nothing of what it checks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ALLOWED = {
    "releases.py": {"tests.e2e.earlier"},
    "podresources.py": {"tests.contracts"},
    "vendors.py": {"tests.e2e", "tests.e2e.vendor_devices", "tests.e2e.vendor_hardware"},
}
"""None of them imports the product; contracts are compiled from upstream's files."""

PRODUCT = {"driver", "scheduler_plugin", "binder", "webhook", "kube"}


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


@pytest.mark.parametrize("file", sorted(HERE.glob("*.py")), ids=lambda file: file.name)
def test_nothing_of_the_product_is_imported(file: Path) -> None:
    found = [*imported(file)]
    assert not {name.partition(".")[0] for name in found} & PRODUCT
    others = {name for name in found if name.startswith("tests.") and "tests.chaos" not in name}
    assert others <= ALLOWED.get(file.name, set())
