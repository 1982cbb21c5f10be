"""Render the chart into the plain manifests of `deploy/`, or check that they are what it renders.

    python -m tests.manifests --write     anew into the folders
    python -m tests.manifests --check     compare, and change nothing

Who installs without Helm applies these. The chart's templates are their only source: each file has
the name of its template.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from local_cluster.helm import run_helm
from moorage_demo.release import CHART, VALUES
from tests import generated

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
FOLDERS = ("dashboard", "manifests", "policies", "webhook")
OPTIONAL = ("dashboard",)
"""Folders of parts that are off by default: who wants one applies its folder, too."""
_BEGINNING = re.compile(r"^---\n# Source: \S+\n", re.MULTILINE)


def rendered() -> dict[str, str]:
    """What the files below `deploy/` should hold, by their paths there."""
    found = _rendered()
    for part in OPTIONAL:
        more = _rendered(f"--set={part}.enabled=true").items()
        found |= {name: text for name, text in more if name.startswith(f"{part}/")}
    return found


def _rendered(*options: str) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        # Hooks are steps of an installation, and no part of it.
        always = ("--namespace=moorage-system", f"--values={VALUES}", "--no-hooks")
        options = (*always, f"--output-dir={folder}", *options)
        run_helm("template", "moorage", str(CHART), *options)
        templates = Path(folder, CHART.name, "templates")
        return {
            str(path.relative_to(templates)): _documents(path.read_text())
            for path in sorted(templates.rglob("*.yaml"))
        }


def _documents(text: str) -> str:
    """A rendered file without Helm's remarks about where each document is from."""
    found = (document.strip() for document in _BEGINNING.split(text))
    return "\n---\n".join(filter(None, found)) + "\n"


def stale(files: dict[str, str]) -> Iterator[str]:
    """What is wrong with the plain manifests."""
    for name, text in files.items():
        path = DEPLOY / name
        if not path.is_file():
            yield f"is missing: deploy/{name}"
        elif path.read_text() != text:
            yield f"differs from what the chart renders: deploy/{name}"
    yield from (f"no template renders deploy/{name}" for name in _orphans(files))


def _orphans(files: dict[str, str]) -> Iterator[str]:
    for folder in FOLDERS:
        for path in sorted((DEPLOY / folder).glob("*.yaml")):
            if (name := str(path.relative_to(DEPLOY))) not in files:
                yield name


def _write(files: dict[str, str]) -> None:
    for name in _orphans(files):
        (DEPLOY / name).unlink()
    for name, text in files.items():
        (DEPLOY / name).parent.mkdir(exist_ok=True)
        (DEPLOY / name).write_text(text)


def main() -> str | None:
    """What to complain about, or None."""
    problems = generated.run(
        "tests.manifests", __doc__, lambda: _write(rendered()), lambda: stale(rendered())
    )
    hint = "Change the templates in deploy/helm/moorage, and run `make manifests`."
    return "\n".join([*problems, hint]) if problems else None


if __name__ == "__main__":
    sys.exit(main())
