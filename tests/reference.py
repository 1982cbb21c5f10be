"""Generate the pages of `docs/reference`, and of time limits, or check that they are what they say.

    python -m tests.reference --write     anew into the files
    python -m tests.reference --check     compare, and change nothing

Fields come from the definitions, which come from the models; flags from the programs themselves;
reasons from the rules of a verdict, states from the table of moves, time limits from the constants
of the code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
import yaml

from driver.models import DeviceConfigModel
from driver.running import settings as driver
from scheduler_plugin import arguments as scheduler_plugin
from scheduler_plugin.judging.rules.table import BY_REASON
from scheduler_plugin.kubectl import commands as kubectl
from scheduler_plugin.objects.names import Reason
from scheduler_plugin.waiting import pod_states
from scheduler_plugin.waiting.admissions import WaitReason
from tests import generated, time_limits
from tests.crds import CRDS, structural_schema
from webhook import settings as webhook

PAGES = Path(__file__).resolve().parent.parent / "docs"
NOTE = "% Generated: `make reference`.\n"
KINDS = ("queues.moorage.dev", "configurations.akri.sh", "instances.akri.sh")
PROGRAMS = (driver.app, scheduler_plugin.app, webhook.app, kubectl.app)


def objects_page() -> str:
    """Every field of every kind, with type, default and meaning."""
    parts = [NOTE, "# Kinds and their fields\n", "What `kubectl explain` tells, on one page.\n"]
    for name in KINDS:
        definition = yaml.safe_load((CRDS / f"{name}.yaml").read_text())
        parts.append(_kind(definition["spec"]))
    parts.append(_device_config())
    return "\n".join(parts)


def _kind(spec: Mapping[str, Any]) -> str:
    (version,) = spec["versions"]
    place = f"`{spec['group']}/{version['name']}`, {spec['scope'].lower()}"
    return _table(spec["names"]["kind"], place, version["schema"]["openAPIV3Schema"])


def _device_config() -> str:
    """It is no object of its own; what `kubectl explain` does not know."""
    place = "Opaque parameters of claims and DeviceClasses, see [DeviceConfig](../device-config.md)"
    schema = structural_schema(DeviceConfigModel)
    return _table("DeviceConfig", place, {**schema, "description": _first(schema)})


def _first(schema: Mapping[str, Any]) -> str:
    """The first sentence, which is for users."""
    return str(schema["description"]).partition(". ")[0] + "."


def _table(kind: str, place: str, schema: Mapping[str, Any]) -> str:
    rows = [f"| `{path}` | {type_} | {text} |" for path, type_, text in _fields(schema, "")]
    head = f"## {kind}\n\n{place}. {schema['description']}\n\n"
    return head + "| field | type | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _fields(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    for name, field in schema.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        yield below, _type(field), _cell(_meaning(field))
        yield from _fields(field.get("items", field), below + "[]" * ("items" in field))


def _type(field: Mapping[str, Any]) -> str:
    if "items" in field:
        return f"list of {_type(field['items'])}s"
    if field.keys() & {"additionalProperties", "patternProperties"} and "properties" not in field:
        return "map"
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    return str(field["type"])


def _meaning(field: Mapping[str, Any]) -> str:
    said = [field.get("description", "")]
    if choices := field.get("enum") or field.get("items", {}).get("enum"):
        said.append(f"One of {', '.join(f'`{choice}`' for choice in choices)}.")
    if "const" in field:
        said.append(f"Always `{field['const']}`.")
    if field.get("default") is not None:
        said.append(f"Default: `{field['default']}`.")
    return " ".join(filter(None, said))


def commands_page() -> str:
    """Every command and flag of every program."""
    parts = [NOTE, "# Command lines\n"]
    for app in PROGRAMS:
        command: Any = typer.main.get_command(app)
        parts.append(f"## {app.info.name}\n\n{app.info.help}\n")
        if app is not kubectl.app:
            parts.append(_cell(app.info.epilog or "") + "\n")
        inside = getattr(command, "commands", None)
        for name, each in (inside or {"": command}).items():
            parts.append(_command(f"{app.info.name} {name}".strip(), each))
    return "\n".join(parts)


def _command(name: str, command: Any) -> str:
    options = [each for each in command.params if each.param_type_name == "option"]
    rows = [_option(each) for each in options if not each.hidden]
    words = [each.make_metavar(None) for each in command.params if each not in options]
    head = f"### {' '.join([name, *words])}\n\n{_flat(command.help or '')}\n\n"
    return head + "| flag | default | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _option(option: Any) -> str:
    flags = " / ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))
    metavar = f" {option.metavar}" if option.metavar else ""
    choices = getattr(option.type, "choices", ())
    said = _flat(option.help or "") + (f" One of {', '.join(choices)}." if choices else "")
    return f"| {flags}{_cell(metavar)} | {_default(option)} | {_cell(said.strip())} |"


def _default(option: Any) -> str:
    if isinstance(option.show_default, str):
        return f"`{option.show_default}`"
    shown = option.show_default and option.default not in (None, "", False, ())
    return f"`{option.default}`" if shown else ""


REFUSALS = """\
## A rule refuses it

The rules are asked in this order, and the first that refuses is the reason. The same reason stands
in the condition `moorage.dev/Admitted`, in Events, and in `PodScheduled` of a pod without a gate;
`kubectl moorage why` and the dashboard show each rule with its figures, and what would have to
change where it refuses. More on limits and owners: [Queues](../queues.md).
"""
OTHERS = """\
## No rule refuses it, or none was asked

More on the gate: [Waiting for quota](../waiting.md). The states that a pod goes through are those
of [the next page](pod-states.md).
"""


def reasons_page() -> str:
    """Why a pod waits: each rule of a verdict, and what else there is."""
    refusals = [f"| `{reason}` | {BY_REASON[reason].meaning} |" for reason in Reason]
    others = [f"| `{wait}` | {wait.meaning} |" for wait in WaitReason]
    return "\n".join(
        [
            *(NOTE, "# Why a pod waits: reasons\n"),
            *(REFUSALS, "| reason | it refuses where |", "|---|---|", *refusals, ""),
            *(OTHERS, "| reason | the pod waits for |", "|---|---|", *others, ""),
        ]
    )


STATES = """\
The leader's scheduler plugin decides which waiting pods go, those at the gate and those that were
refused without one. A pod is in one of these states there; after a restart it is found anew, and no
state is kept. [Waiting for quota](../waiting.md) says which pod goes first.
"""


def pod_states_page() -> str:
    """The states of a waiting pod, and what moves it from one to another."""
    states = [f"| `{state}` | {pod_states.MEANINGS[state]} |" for state in pod_states.PodState]
    moves = [
        f"| `{before}` | `{after}` | {why} |"
        for before, moves in pod_states.TRANSITIONS.items()
        for after, why in moves.items()
    ]
    return "\n".join(
        [
            *(NOTE, "# States of a waiting pod\n", STATES),
            *("| state | the pod |", "|---|---|", *states, ""),
            *("## Moves\n", "| from | to | when |", "|---|---|---|", *moves, ""),
        ]
    )


def _flat(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def time_limits_page() -> str:
    """Every time limit of every component."""
    return NOTE + "\n" + time_limits.page(PROGRAMS)


GENERATED = {
    "reference/objects.md": objects_page,
    "reference/command-lines.md": commands_page,
    "design/time-limits.md": time_limits_page,
    "reference/reasons.md": reasons_page,
    "reference/pod-states.md": pod_states_page,
}


def stale() -> Iterator[str]:
    """What is wrong with the pages."""
    for name, generate in GENERATED.items():
        file = PAGES / name
        if not file.exists() or file.read_text() != generate():
            yield f"differs from what it is about: {file.name}"


def write() -> None:
    for name, generate in GENERATED.items():
        (PAGES / name).write_text(generate())


def main() -> str | None:
    """What to complain about, or None."""
    problems = generated.run("tests.reference", __doc__, write, stale)
    return "\n".join([*problems, "Run `make reference`."]) if problems else None


if __name__ == "__main__":
    sys.exit(main())
