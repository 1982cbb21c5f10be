"""`kubectl moorage` says what the API's objects say."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.e2e.sharing.stories import Story

MAIN = "import sys; from scheduler_plugin.kubectl import main; sys.exit(main())"


def ask(story: Story, *words: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-c", MAIN, *words, f"--kubeconfig={story.cluster.kubeconfig}")
    return subprocess.run(command, capture_output=True, text=True, check=False)


def answer(story: Story, *words: str) -> Any:
    done = ask(story, *words, "--output=json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_who_pays_who_uses_and_why_a_pod_waits_is_answered(story: Story) -> None:
    payer = story.queue("payer", quota=1, limit=1)
    guest = story.queue("guest")
    story.devices(2)
    story.claim()
    story.pod("first", payer)
    story.wait_bound("first")
    story.pod("second", guest)
    story.wait_bound("second")
    story.claim("more")
    story.pod("third", payer, "more")
    sentence = story.wait_refused("third", "OverLimit")

    (row,) = [row for row in answer(story, "queues") if row["queue"] == payer]
    assert (row["device_class"], row["usage"], row["quota"], row["limit"]) == (story.name, 1, 1, 1)

    (claim,) = [
        c
        for c in answer(story, "claims")
        if (c["namespace"], c["payer"])
        == (
            story.namespace,
            payer,
        )
    ]
    users = [f"{story.namespace}/{name}" for name in ("first", "second")]
    assert sorted(claim["users"]) == users

    (used,) = answer(story, "charge", guest)
    assert (used["payer"], used["users"]) == (payer, [users[1]])

    found = answer(story, "why", "third", f"--namespace={story.namespace}")
    assert found["reason"] == "OverLimit"
    assert found["sentence"].endswith(f"uses 1 {story.name}, 1 more would pass its limit of 1.")
    assert payer in sentence
    assert answer(story, "why", "first", f"--namespace={story.namespace}")["reason"] == "Running"


def test_what_is_not_there_is_said_in_a_sentence(story: Story) -> None:
    absent = ask(story, "charge", "nobody")
    nobody = ask(story, "why", "nobody")

    assert (absent.returncode, nobody.returncode) == (1, 1)
    assert absent.stderr == "kubectl moorage charge: there is no Queue nobody\n"
    assert "there is no pod default/nobody" in nobody.stderr
