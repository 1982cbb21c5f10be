"""`kubectl moorage import` as a process: what goes where, and its exit status."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from scheduler_plugin.models import queue_problems
from tests.scheduler_plugin.importing.kueue.test_kueue_queues import MAPPED, a_cluster_queue
from tests.scheduler_plugin.kubectl.snapshots import RUN, ask

ALL_SAID = a_cluster_queue("team-a", 4)
NOT_ALL_SAID = a_cluster_queue("team-a", 4, stopPolicy="Hold")
REPORTED = "ClusterQueue/team-a spec.stopPolicy: A Queue cannot be stopped."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "configuration.yaml").write_text(MAPPED)
    (tmp_path / "all.json").write_text(json.dumps(yaml.safe_load(ALL_SAID)))
    (tmp_path / "some.yaml").write_text(f"---\n{NOT_ALL_SAID}\n---\n")
    return tmp_path


def imported(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return ask("import", str(folder / "configuration.yaml"), *words)


def test_queues_go_to_standard_output_and_nothing_else_is_printed(folder: Path) -> None:
    done = imported(folder, str(folder / "all.json"), "--strict")

    assert (done.returncode, done.stderr) == (0, "")
    (queue,) = yaml.safe_load_all(done.stdout)
    assert queue_problems(queue) == ()
    assert queue["spec"]["resources"][0]["quota"] == 4


def test_what_cannot_be_said_goes_to_standard_error(folder: Path) -> None:
    done = imported(folder, str(folder / "some.yaml"))

    assert done.returncode == 0
    assert done.stderr.startswith(REPORTED)
    assert [queue["metadata"]["name"] for queue in yaml.safe_load_all(done.stdout)] == ["team-a"]


def test_strict_prints_all_or_nothing(folder: Path) -> None:
    done = imported(folder, str(folder / "some.yaml"), "--strict")

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(REPORTED)
    assert "no Queues are printed" in done.stderr.splitlines()[-1]


def test_standard_input_is_a_file_too(folder: Path) -> None:
    command = (sys.executable, "-c", RUN, "import", "-", str(folder / "configuration.yaml"))
    done = subprocess.run(command, input=ALL_SAID, capture_output=True, text=True, check=True)

    assert yaml.safe_load(done.stdout)["metadata"]["name"] == "team-a"


def test_classes_are_named_by_flags(tmp_path: Path) -> None:
    file = tmp_path / "queue.yaml"
    file.write_text(a_cluster_queue("team-a", 4))
    named = ask("import", str(file), "--device-class", "example.com/gpu=gpu.example.com")
    other = ask("import", str(file), "--gpu-class=gpu.example.com")

    entry = {"deviceClass": "gpu.example.com", "quota": 4, "limit": 4}
    assert yaml.safe_load(named.stdout)["spec"]["resources"] == [entry]
    assert "No DeviceClass of example.com/gpu is known" in other.stderr


def test_an_input_without_queues_is_a_sentence(folder: Path) -> None:
    done = imported(folder)

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "kubectl moorage: import: no queues of KAI or Kueue are in the input.\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "this is neither YAML nor JSON"),
        ("{", "this is neither YAML nor JSON"),
        ("\0", "this is neither YAML nor JSON"),
        ("&a {apiVersion: v1, kind: List, items: [*a]}", "nested too deeply"),
        ("- a", "Each document must be an object."),
        (a_cluster_queue("a", -1), "nominalQuota: Must be a quantity of at least 0."),
    ],
)
def test_what_cannot_be_read_ends_it_before_anything_is_printed(
    text: str, sentence: str, folder: Path
) -> None:
    (folder / "bad.yaml").write_text(text)
    done = imported(folder, str(folder / "all.json"), str(folder / "bad.yaml"))

    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.startswith("kubectl moorage: import: ")


PAGE = Path(__file__).parents[3] / "docs" / "import.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(language, text) for language, text in BLOCK.findall(PAGE.read_text())]
EXAMPLES = [
    number
    for number, (language, text) in enumerate(BLOCKS)
    if language == "sh" and text.startswith("kubectl moorage import ")
]


@pytest.mark.parametrize("number", EXAMPLES)
def test_the_page_prints_what_the_command_prints(number: int, tmp_path: Path) -> None:
    for language, text in BLOCKS[:number]:
        if language == "yaml" and text.startswith("# "):
            (tmp_path / text.splitlines()[0].removeprefix("# ")).write_text(text)
    words = BLOCKS[number][1].split()[2:]
    done = ask(*(str(tmp_path / word) if word.endswith(".yaml") else word for word in words))

    (_, queues), (_, lines) = BLOCKS[number + 1 : number + 3]
    assert (done.returncode, done.stderr) == (0, lines)
    assert list(yaml.safe_load_all(done.stdout)) == list(yaml.safe_load_all(queues))


def test_the_page_has_an_example_of_each_project() -> None:
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Missing argument"),
        (("no-such-file",), "does not exist"),
        (("-", "--device-class", "gpu"), "must be RESOURCE=CLASS"),
    ],
)
def test_wrong_words_are_refused(words: tuple[str, ...], sentence: str) -> None:
    done = ask("import", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in " ".join(done.stderr.split())
