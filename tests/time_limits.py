"""Where every time limit is set: the page `docs/design/time-limits.md`, from the code itself.

Flags come from the programs, what is deployed from the manifests, all else from constants and
fields of the components whose names or values are times. What each means is the docstring below it,
or what its class says of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import typer
import yaml

ROOT = Path(__file__).resolve().parent.parent
COMPONENTS = ("driver", "scheduler_plugin", "binder", "webhook", "kube")
DEPLOYED = ("manifests", "webhook")
TIMES_OF_METAVARS = ("DURATION", "SECONDS", "DAYS")
DEPLOYED_TIMES = re.compile(
    r"\w+Seconds|failureThreshold|leaseDuration|renewDeadline|retryPeriod|httpTimeout"
)
NAMED_AS_TIME = re.compile(r"(?:.*_)?(?:SECONDS|TIMEOUT|INTERVAL|DAYS)", re.IGNORECASE)
STEPS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))


class TimeLimit(NamedTuple):
    """A constant or field."""

    name: str
    value: str
    meaning: str


def page(apps: Sequence[typer.Typer]) -> str:
    """All of it."""
    parts = [
        "# Where every time limit is set\n",
        "What an administrator may set comes first, then what is deployed, then what only the code"
        " says. A backoff doubles from its first time to its longest; each wait is drawn at random"
        " between zero and that. What follows when a part fails: [failures.md](failures.md).\n",
        "## Flags\n",
        _table(("flag", "value", "meaning"), _flags(apps)),
        "A Queue has `ownerExitGracePeriod`, `preemptMinRuntime` and `reclaimMinRuntime`, a"
        " Configuration `offlineGracePeriod`: [kinds and fields](../reference/objects.md).\n",
        "## What is deployed\n",
        _table(("file", "field", "value"), _deployed()),
    ]
    for component in COMPONENTS:
        head = ("module", "name", "value", "meaning")
        parts += [f"## {component}\n", _table(head, _constants(component))]
    return "\n".join(parts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head))]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("``", "`")


def _flags(apps: Sequence[typer.Typer]) -> Iterator[tuple[str, str, str]]:
    for app in apps:
        command: Any = typer.main.get_command(app)
        for name, each in (getattr(command, "commands", None) or {"": command}).items():
            for option in each.params:
                if option.metavar in TIMES_OF_METAVARS:
                    shown = option.show_default
                    default = shown if isinstance(shown, str) else option.default
                    value = f"`{default}`" if default else ""
                    program = f"{app.info.name} {name}".strip()
                    yield f"`{program} {option.opts[0]}`", value, _flat(option.help)


def _deployed() -> Iterator[tuple[str, str, str]]:
    for folder in DEPLOYED:
        for file in sorted((ROOT / "deploy" / folder).glob("*.yaml")):
            for document in yaml.safe_load_all(file.read_text()):
                for path, value in _times_in(document, ""):
                    field = path.removeprefix("spec.template.spec.")
                    yield f"`deploy/{folder}/{file.name}`", f"`{field}`", value


def _times_in(body: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(body, dict):
        for key, value in body.items():
            below = f"{path}.{key}".lstrip(".")
            if DEPLOYED_TIMES.fullmatch(str(key)) and not isinstance(value, dict):
                yield below, _with_unit(str(key), value)
            elif isinstance(value, str) and "kind: KubeSchedulerConfiguration" in value:
                yield from _times_in(yaml.safe_load(value), below)
            else:
                yield from _times_in(value, below)
    elif isinstance(body, list):
        for each in body:
            name = each.get("name", "") if isinstance(each, dict) else ""
            yield from _times_in(each, f"{path}[{name}]")


def _with_unit(key: str, value: int | str) -> str:
    if key == "failureThreshold":
        return f"{value} times"
    return f"{value} s" if isinstance(value, int) else value


def _constants(component: str) -> Iterator[tuple[str, str, str, str]]:
    for file in sorted((ROOT / component).rglob("*.py")):
        if "pb2" not in file.name:
            module = str(file.relative_to(ROOT))
            for name, value, meaning in constants(ast.parse(file.read_text())):
                yield f"`{module}`", f"`{name}`", value, meaning


def constants(tree: ast.Module | ast.ClassDef) -> Iterator[TimeLimit]:
    """Those of a module and of its classes, with what is said of them."""
    about = _attributes(ast.get_docstring(tree) or "")
    prefix = f"{tree.name}." if isinstance(tree, ast.ClassDef) else ""
    numbers = _numbers(tree)
    for position, node in enumerate(tree.body):
        if isinstance(node, ast.ClassDef):
            yield from constants(node)
            continue
        name, value = _assigned(node)
        if value is not None and (shown := _time(name, _Named(numbers).visit(value))):
            meaning = _below(tree.body, position) or about.get(name, "")
            yield TimeLimit(prefix + name, shown, _first_sentence(meaning))


class _Named(ast.NodeTransformer):
    """Puts numbers in the place of the names that a module gave them."""

    def __init__(self, numbers: Mapping[str, ast.Constant]) -> None:
        self._numbers = numbers

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._numbers.get(node.id, node)


def _numbers(tree: ast.Module | ast.ClassDef) -> dict[str, ast.Constant]:
    assigned = [_assigned(node) for node in tree.body]
    return {name: value for name, value in assigned if isinstance(value, ast.Constant)}


def _assigned(node: ast.stmt) -> tuple[str, ast.expr | None]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            return name, value
        case _:
            return "", None


def _below(body: Sequence[ast.stmt], position: int) -> str:
    """The docstring below a constant, or nothing."""
    match body[position + 1 : position + 2]:
        case [ast.Expr(value=ast.Constant(value=str(text)))]:
            return text
        case _:
            return ""


def _attributes(docstring: str) -> dict[str, str]:
    """What a class says of its attributes, in Google's style."""
    _, _, rest = docstring.partition("Attributes:\n")
    found = re.findall(r"^    (\w+): ((?:.+\n?)(?:^     +.+\n?)*)", rest, re.MULTILINE)
    return dict(found)


def _time(name: str, value: ast.expr) -> str:
    """How it is written on the page, or nothing where it is no time."""
    match value:
        case ast.Constant(value=int() | float() as number) if NAMED_AS_TIME.fullmatch(name):
            unit = 86_400 if name.upper().endswith("DAYS") else 1
            return _seconds(number * unit)
        case ast.Constant(value=str(text)) if NAMED_AS_TIME.fullmatch(name):
            return text
        case ast.Tuple(elts=[ast.Constant(value=first), ast.Constant(value=last)]) if (
            NAMED_AS_TIME.fullmatch(name)
        ):
            return f"{_seconds(float(str(first)))} to {_seconds(float(str(last)))}"
        case ast.Call(func=ast.Name(id="timedelta")):
            return _seconds(timedelta(**_arguments(value)).total_seconds())
        case ast.Call(func=ast.Name(id="Backoff")):
            given = {"first_seconds": 0.5, "cap_seconds": 30.0, **_arguments(value)}
            first, last = given["first_seconds"], given["cap_seconds"]
            return f"backoff {_seconds(first)} to {_seconds(last)}"
        case _:
            return ""


def _arguments(call: ast.Call) -> dict[str, float]:
    return {str(each.arg): float(ast.literal_eval(each.value)) for each in call.keywords}


def _seconds(number: float) -> str:
    for step, unit in STEPS:
        if number >= step and (number / step).is_integer():
            return f"{number / step:g} {unit}"
    return f"{number * 1000:g} ms" if number else ""


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.;])\s", _flat(text), maxsplit=1)[0].rstrip(";")


def _flat(text: str) -> str:
    return " ".join(text.split())
