"""Runs `kubectl moorage import`: reads files, prints Queues, and says what they do not say.

Queues go to standard output, ready for `kubectl apply -f -`, and sentences to standard error. The
exit status is 0 if files could be read, 2 if not, and with `--strict` 3 if something cannot be
said; then no Queue is printed, so that `apply` gets all or nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from scheduler_plugin.importing.api import NotValidError, translated
from scheduler_plugin.kubectl.import_settings import ImportSettings
from scheduler_plugin.kubectl.printing import note

STANDARD_INPUT = "-"
NOT_VALID, INCOMPLETE = 2, 3


def run_import(settings: ImportSettings) -> int:
    """Print the Queues and what cannot be said; returns the exit status."""
    try:
        documents = [each for file in settings.files for each in _documents(file)]
        found = translated(documents, settings.device_classes, settings.gpu_class)
    except NotValidError as error:
        for problem in error.problems:
            note(f"import: {problem}")
        return NOT_VALID
    except RecursionError:
        note("import: the input is nested too deeply.")
        return NOT_VALID
    sys.stderr.write("".join(f"{finding}\n" for finding in found.findings))
    if settings.is_strict and found.findings:
        note("import: no Queues are printed, since not all can be said (--strict).")
        return INCOMPLETE
    if not found.queues:
        note("import: no queues of KAI or Kueue are in the input.")
    else:
        sys.stdout.write(yaml.safe_dump_all(found.queues, sort_keys=False))
    return 0


def _documents(file: Path) -> Iterator[object]:
    """The documents of a file.

    Raises:
        NotValidError: It cannot be read, or is no YAML.
    """
    is_input = str(file) == STANDARD_INPUT
    try:
        text = sys.stdin.read() if is_input else file.read_text(encoding="utf-8")
        yield from _parsed(text)
    except OSError as error:
        raise NotValidError([f"{file}: {error.strerror}"]) from None
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise NotValidError([f"{file}: this is neither YAML nor JSON: {error}"]) from None


def _parsed(text: str) -> list[object]:
    """JSON in one document, or YAML."""
    if text.lstrip().startswith("{"):
        try:
            return [json.loads(text)]
        except ValueError:
            pass  # YAML may begin so, too.
    return list(yaml.safe_load_all(text))
