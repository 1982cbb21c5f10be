"""`kubectl moorage` says what the API's objects say."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.sharing import objects
from tests.e2e.sharing.stories import NODE, Story

MAIN = "import sys; from scheduler_plugin.kubectl.commands import main; sys.exit(main())"


def with_kubectl(story: Story) -> dict[str, str]:
    """As users have it: kubectl runs this command, so it is on PATH."""
    folder = Path(story.cluster.kubectl_program).parent
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def ask(story: Story, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-c", MAIN, *words, f"--kubeconfig={story.cluster.kubeconfig}")
    own = {**with_kubectl(story), **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=own)


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
        for c in answer(story, "claims", "-n", story.namespace)
        if (c["namespace"], c["payer"])
        == (
            story.namespace,
            payer,
        )
    ]
    (result,) = story.get("claim", "shared")["status"]["allocation"]["devices"]["results"]
    assert claim["devices"] == ["/".join(result[key] for key in ("driver", "pool", "device"))]
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
    assert absent.stderr == "kubectl moorage charge: there is no Queue nobody.\n"
    assert "there is no pod default/nobody" in nobody.stderr


def wait_seen(story: Story, *words: str, **fields: Any) -> Any:
    """The first answer whose row has these fields."""
    found: list[Any] = []

    def is_there() -> bool:
        rows = answer(story, *words)
        found[:] = [r for r in rows if all(r[key] == value for key, value in fields.items())]
        return bool(found)

    story.until(f"{words} says {fields}", is_there)
    return found[0]


def test_devices_are_those_of_the_slices_with_the_claims_that_have_them(story: Story) -> None:
    payer, guest = story.queue("payer", quota=1, limit=1), story.queue("guest")
    story.devices(2)
    story.claim()
    for name, queue in (("first", payer), ("second", guest)):
        story.pod(name, queue)
        story.wait_bound(name)
    (result,) = story.get("claim", "shared")["status"]["allocation"]["devices"]["results"]

    rows = [row for row in answer(story, "devices") if row["driver"] == story.driver]

    published = story.api.get("/apis/resource.k8s.io/v1/resourceslices")["items"]
    names = {
        device["name"]
        for one in published
        if one["spec"]["driver"] == story.driver
        for device in one["spec"]["devices"]
    }
    assert {row["name"] for row in rows} == names
    assert {tuple(row["nodes"]) for row in rows} == {(NODE,)}
    used = {row["name"]: row for row in rows if row["used"]}
    assert list(used) == [result["device"]]
    (user,) = used[result["device"]]["users"]
    assert (user["what"], user["payer"]) == (f"ResourceClaim {story.namespace}/shared", payer)
    assert sorted(user["pods"]) == [f"{story.namespace}/{name}" for name in ("first", "second")]


def test_a_snapshot_says_what_the_cluster_said_and_nothing_secret(
    story: Story, tmp_path: Path
) -> None:
    queue = story.queue("team", quota=1, limit=1)
    story.devices(2)
    story.claim()
    story.pod("first", queue, command=("sleep", "100000", "hunter2"))
    story.wait_bound("first")
    story.claim("more")
    story.pod("second", queue, "more", command=("sleep", "100000", "hunter2"))
    story.wait_refused("second", "OverLimit")
    file = tmp_path / "snapshot.json"

    done = ask(story, "snapshot", str(file))

    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert "hunter2" not in text
    assert f'"{queue}"' in text
    why = ("why", "second", f"--namespace={story.namespace}")
    for words in (("queues",), ("claims", "-A"), ("charge", queue), ("devices",), ("handlers",)):
        mine = [row for row in answer(story, *words) if queue in str(row)]
        again = answer(story, *words, f"--snapshot={file}")
        assert [row for row in again if queue in str(row)] == mine
    live, later = answer(story, *why), answer(story, *why, f"--snapshot={file}")
    assert (live["reason"], live["sentence"]) == (later["reason"], later["sentence"])
    assert live["told"][-1] != "", "Events are told beside the conditions"
    file.write_text(text.replace('"format": 1', '"format": 7'))
    other = ask(story, "queues", f"--snapshot={file}")
    assert (other.returncode, "this version reads format 1" in other.stderr) == (2, True)


def _full_queue(story: Story) -> str:
    """One of whose pods has all that it may use, and a claim for which there is a device."""
    queue = story.queue("team", quota=1, limit=1)
    story.devices(2)
    story.claim()
    story.pod("first", queue)
    story.wait_bound("first")
    story.claim("more")
    return queue


def test_what_is_simulated_is_what_happens_then(story: Story, tmp_path: Path) -> None:
    """A pod that does not fit; a limit that would let it; and then both for real."""
    queue = _full_queue(story)
    labels = {objects.QUEUE: queue}
    pod = objects.pod("second", ("more",), labels=labels)
    raised = story.get("queue", queue)
    raised["spec"]["resources"][0]["limit"] = 2
    pods, queues = _written(tmp_path / "pod", pod), _written(tmp_path / "queue", raised)
    where = f"--namespace={story.namespace}"

    refused = answer(story, "simulate", f"--pod={pods}", where)
    admitted = answer(story, "simulate", f"--pod={pods}", f"--queue={queues}", where)
    lost = answer(story, "simulate", "--without-device", _device(story))

    (one,), (two,) = refused["pods"], admitted["pods"]
    assert (one["reason"], two["reason"]) == ("OverLimit", "Admitted")
    (charged,) = two["charged"]
    assert (charged["queue"], charged["added"]) == (queue, 1)
    assert charged["what"] == f"ResourceClaim {story.namespace}/more"
    assert f"ResourceClaim {story.namespace}/shared" in lost["devices"][0]["sentence"]
    assert story.find("pod", "second") is None, "nothing was written"
    story.pod("second", queue, "more")
    # kube-scheduler takes the full stop for the end of its own sentence.
    assert one["sentence"].rstrip(".") in story.wait_refused("second", "OverLimit")
    story.change_queue(queue, {"resources": raised["spec"]["resources"]})
    story.wait_bound("second")
    assert wait_seen(story, "queues", queue=queue, usage=2)["limit"] == 2


def test_a_pod_without_a_free_device_is_told_who_has_them(story: Story, tmp_path: Path) -> None:
    """`why` before and after kube-scheduler looked for a node, and `simulate` of one more."""
    queue = story.queue("team", quota=4, limit=4)
    story.devices(1)
    story.claim()
    story.pod("first", queue)
    story.wait_bound("first")
    story.claim("more")
    story.pod("second", queue, "more")
    story.claim("third")
    pods = _written(
        tmp_path / "pod", objects.pod("third", ("third",), labels={objects.QUEUE: queue})
    )
    where = f"--namespace={story.namespace}"

    def is_told() -> bool:
        return bool(answer(story, "why", "second", where)["reason"] == "NoDeviceFree")

    story.until("the pod is told that no device is free", is_told)
    found = answer(story, "why", "second", where)
    (simulated,) = answer(story, "simulate", f"--pod={pods}", where)["pods"]

    assert "1 exists, 1 is in use" in found["sentence"]
    assert f"ResourceClaim {story.namespace}/shared" in found["remedies"][0]
    assert f"used by {story.namespace}/first" in found["remedies"][0]
    assert (simulated["reason"], simulated["charged"]) == ("NoDeviceFree", [])
    story.delete("pod", "first")
    story.delete("claim", "shared")
    story.wait_bound("second")
    assert answer(story, "why", "second", where)["reason"] == "Running"


def _written(path: Path, obj: Any) -> Path:
    path.write_text(yaml.safe_dump(obj))
    return path


def _device(story: Story) -> str:
    (result,) = story.get("claim", "shared")["status"]["allocation"]["devices"]["results"]
    name: str = result["device"]
    return name


def test_why_tells_of_pods_that_are_gone_and_of_those_that_need_nothing(story: Story) -> None:
    queue = story.queue("team", quota=0, limit=0)
    story.devices(1)
    story.claim()
    story.pod("waits", queue)
    story.wait_refused("waits", "OverLimit")
    story.plain_pod("plain")
    story.delete("pod", "waits")
    where = f"--namespace={story.namespace}"

    gone, plain = answer(story, "why", "waits", where), answer(story, "why", "plain", where)

    assert (gone["reason"], plain["reason"]) == ("Gone", "NotAccounted")
    assert any("OverLimit" in told for told in gone["told"])


def test_whoever_may_not_read_is_told_what(story: Story) -> None:
    """An account without rights: verb and resource are named, in one sentence."""
    kubeconfig = story.cluster.service_account_kubeconfig("default", namespace=story.namespace)
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    command = (sys.executable, "-c", MAIN, "queues")

    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    assert done.returncode == 2
    assert 'cannot list resource "queues" in API group "moorage.dev"' in done.stderr
    assert "Traceback" not in done.stderr


def ask_as(story: Story, kubeconfig: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    command = (sys.executable, "-c", MAIN, *words)
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_why_works_with_view_in_one_namespace(story: Story) -> None:
    """With Kubernetes' own ClusterRole: what the plugin said is told, and what was not read."""
    queue = story.queue("team", quota=1, limit=1)
    story.devices(2)
    story.claim()
    story.pod("first", queue)
    story.wait_bound("first")
    story.claim("more")
    story.pod("second", queue, "more")
    story.wait_refused("second", "OverLimit")
    api = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{api}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "views", "namespace": story.namespace},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": story.namespace}],
    }
    story.cluster.apply([binding])
    kubeconfig = story.cluster.service_account_kubeconfig("default", namespace=story.namespace)
    words = ("why", "second", "-n", story.namespace, "-o", "json")
    story.until("it may read", lambda: ask_as(story, kubeconfig, *words).returncode == 0)

    found = json.loads(ask_as(story, kubeconfig, *words).stdout)

    assert "would pass its limit of 1" in found["sentence"]
    assert found["rules"] == []
    *unread, meaning = found["not_read"]
    assert any(line.startswith("queues: ") for line in unread)
    assert any(line.startswith("pods of all namespaces: ") for line in unread)
    assert meaning.startswith("So this command checks nothing.")
    assert any("OverLimit" in told for told in found["told"])


def test_why_tells_no_events_of_an_earlier_pod_of_that_name(story: Story) -> None:
    queue = story.queue("team", quota=0, limit=0)
    story.devices(1)
    story.claim()
    story.pod("waits", queue)
    story.wait_refused("waits", "OverLimit")
    where = f"--namespace={story.namespace}"
    story.until("an Event tells", lambda: len(answer(story, "why", "waits", where)["told"]) > 1)
    story.delete("pod", "waits")
    story.until("it is gone", lambda: story.find("pod", "waits") is None)
    story.plain_pod("waits")

    found = answer(story, "why", "waits", where)

    assert not [told for told in found["told"] if "OverLimit" in told]


@pytest.mark.parametrize("view", ["queues", "devices", "handlers"])
def test_no_cluster_is_a_sentence(view: str, tmp_path: Path) -> None:
    command = (sys.executable, "-c", MAIN, view, f"--kubeconfig={tmp_path / 'absent'}")

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert done.stderr.startswith(f"kubectl moorage {view}: kubeconfig")


def test_what_kubectl_reads_is_what_is_read_without_it(story: Story) -> None:
    """The kubeconfig has a client certificate. No kubectl is left running."""
    queue = story.queue("team", quota=1, limit=1)
    story.until("the queue is told", lambda: queue in ask(story, "queues").stdout)

    for words in (("version",), ("queues", queue), ("handlers",), ("why", "absent")):
        through, without = ask(story, *words), ask(story, *words, PATH="")
        assert (through.returncode, through.stdout) == (without.returncode, without.stdout)
        assert through.stderr == without.stderr
    assert proxies_of(str(story.cluster.kubeconfig)) == []


def proxies_of(kubeconfig: str) -> list[str]:
    """The command lines of all `kubectl proxy` with this kubeconfig."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # A process that has ended meanwhile.
            found.append(path.read_bytes().decode(errors="replace").replace("\0", " "))
    return [line for line in found if f"--kubeconfig={kubeconfig} proxy " in line]


def test_tables_have_no_colours_where_nobody_looks(story: Story) -> None:
    queue = story.queue("team", quota=1, limit=1)
    for words in (("queues", "-o", "wide"), ("devices", "-o", "wide"), ("handlers",)):
        done = ask(story, *words)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout
        if words[0] == "queues":
            assert queue in done.stdout


SHOWN_SECONDS = 60.0
"""How long a terminal may take to show a text."""


def test_kubectl_completes_names_from_the_cluster(story: Story, tmp_path: Path) -> None:
    """Kubectl itself asks the plugin beside it, by its own contract."""
    queue = story.queue("team", quota=1, limit=1)
    for name, module in (
        ("kubectl-moorage", "scheduler_plugin.kubectl.commands"),
        ("kubectl_complete-moorage", "scheduler_plugin.kubectl.completion"),
    ):
        script = tmp_path / name
        run = f"import sys; from {module} import main; sys.exit(main())"
        # Not as the script's interpreter: a path there ends at its first space.
        script.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -c '{run}' \"$@\"\n")
        script.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }

    def completed(*words: str) -> list[str]:
        with pytest.MonkeyPatch.context() as patch:
            for key in ("PATH", "PYTHONPATH"):
                patch.setenv(key, environment[key])
            done = story.cluster.kubectl("__complete", "moorage", *words)
        return done.stdout.splitlines()

    # On a busy machine the cluster's names come later than somebody at his keyboard would wait.
    story.until("names are completed", lambda: queue in completed("charge", "team"))
    assert "json" in completed("queues", "-o", "")
    assert any(line.startswith("simulate\t") for line in completed(""))
