"""The site's pages that are generated, and the site itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from scheduler_plugin.objects.names import Reason
from scheduler_plugin.waiting.admissions import WaitReason
from scheduler_plugin.waiting.pod_states import PodState
from tests import reference

ROOT = Path(__file__).resolve().parent.parent


def test_the_pages_tell_every_field_and_flag() -> None:
    objects, commands = reference.objects_page(), reference.commands_page()

    assert "| `spec.resources[].overQuotaWeight` | integer |" in objects
    assert "One of `Keep`, `Evict`." in objects
    assert "| `permissions` | string | What containers may do with device nodes:" in objects
    assert "| `apiVersion` | string | Always `moorage.dev/v1alpha1`. |" in objects
    assert "### kubectl moorage why POD" in commands
    assert "| `--orphan-policy` | `OldestPod` |" in commands
    assert "MOORAGE_&lt;FLAG>" in commands


def test_the_pages_tell_every_reason_and_state() -> None:
    reasons, states = reference.reasons_page(), reference.pod_states_page()

    for reason in (*Reason, *WaitReason):
        assert f"\n| `{reason}` | " in reasons
    assert "| `ClaimSharingDenied` | The owner of the claim does not share" in reasons
    for state in PodState:
        assert f"\n| `{state}` | " in states
    assert "| `Queued` | `Assumed` | it is the head, and it fits |" in states


def test_the_site_is_made_without_a_warning(tmp_path: Path) -> None:
    options = ("--quiet", "--fail-on-warning", "--keep-going", "-c", str(ROOT / "docs"))
    command = (sys.executable, "-m", "sphinx", *options, str(ROOT), str(tmp_path))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "docs" / "tutorial.html").exists()
