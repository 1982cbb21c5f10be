"""What a story of two replicas is told with, beside what all stories of sharing are."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from tests.e2e.failover import installation
from tests.e2e.failover.replicas import Replica, Replicas
from tests.e2e.sharing import audit, objects, stories
from tests.e2e.sharing.audit import Entry
from tests.e2e.sharing.write_gate import WriteGate

NODE_OF_TOKEN = "authentication.kubernetes.io/node-name"
READS = ("get", "list", "watch")
KILLED, STOPPED, CONTINUED = signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT


@dataclass(kw_only=True)
class Story(stories.Story):
    """One test; its pods go to the replicas' scheduler.

    Attributes:
        leader: The replica that led when it began.
        follower: The other one.
    """

    replicas: Replicas
    leader: Replica
    follower: Replica

    def pod(self, name: str, queue: str, *claims: str, **options: Any) -> None:
        options = {"schedulerName": installation.SCHEDULER, **options}
        super().pod(name, queue, *claims, **options)

    def gate_of_leader(self) -> AbstractContextManager[WriteGate]:
        """Stop the bindings that this leader's plugin sends, and nobody else's."""
        extra = f"request.userInfo.extra['{NODE_OF_TOKEN}']"
        is_there = f"'{NODE_OF_TOKEN}' in request.userInfo.extra"
        return self.bindings_stopped(f"{is_there} && '{self.leader.node}' in {extra}")

    def wait_taken_over(self) -> None:
        self.until("the other replica leads", self.follower.leads)

    def wait_given_up(self) -> None:
        """A kube-scheduler that lost the Lease ends, but after `renewDeadline` only."""
        scheduler = self.leader.scheduler
        self.until("the one that led ends", lambda: scheduler.pid is None)

    def ask_to_bind(self, pod: str) -> str:
        """What the plugin of the one that led answers to a Bind."""
        uid = self.uid("pod", pod)
        place = {"PodNamespace": self.namespace, "Node": stories.NODE}
        answer = self.leader.extender.ask("bind", {"PodName": pod, "PodUID": uid, **place})
        return str(answer["Error"])

    def binding_codes(self, pod: str, replica: Replica) -> list[int]:
        """How the API server answered the bindings of a pod that a replica sent."""
        return [
            entry["responseStatus"]["code"]
            for entry in self.audited()
            if is_by(entry, replica)
            and entry["objectRef"].get("subresource") == "binding"
            and entry["objectRef"]["name"] == pod
        ]

    def moment(self) -> int:
        """Now, as a place in the audit log."""
        return self.cluster.audit_log.stat().st_size

    def written_by(self, replica: Replica, since: int) -> list[str]:
        """What the API server let a replica write after a moment that stays written.

        Those are not Events, nor the status of a Queue: what is sent in the very step in which the
        process was stopped may come late (`leadership`), and the successor puts that right.
        A kube-scheduler that gives up empties the Lease without looking whose it is by then: its
        client reads the newest version and writes over that (`tryRelease` of client-go, seen with
        1.36). Whose turn it is the plugin reads from the Lease before each write, hence it only
        waits until the other replica has written its name again.
        """
        return [
            f"{entry['user']['username']} {entry['verb']} {entry['requestURI']}"
            for entry in audit.entries(self.cluster.audit_log, f'["{replica.node}"]', since)
            if is_by(entry, replica)
            and entry["verb"] not in READS
            and _stays_written(entry["objectRef"])
            and entry["responseStatus"]["code"] < 300
        ]

    def history(self, kind: str, since: str) -> list[Entry]:
        """Every version of this namespace's objects of a kind after one of them, in order."""
        newest = max(map(_version, self.all(kind)))

        def all_of_it() -> list[Entry]:
            events = self._told_since(kind, since)
            return events if any(_version(e["object"]) >= newest for e in events) else []

        return self.until(f"the history of each {kind} is told", all_of_it)

    def _told_since(self, kind: str, since: str) -> list[Entry]:
        path = f"{self.path(kind)}?watch=1&resourceVersion={since}&timeoutSeconds=1"
        told = self.cluster.kubectl("get", "--raw", path).stdout
        return [json.loads(line) for line in told.splitlines()]

    def version(self, kind: str) -> str:
        """The resourceVersion of this moment."""
        return str(self.api.get(self.path(kind))["metadata"]["resourceVersion"])

    def describe(self) -> Iterator[str]:
        yield from super().describe()
        for replica in self.replicas:
            yield from replica.describe()


def is_by(entry: Entry, replica: Replica) -> bool:
    """Whether kube-scheduler or the plugin of this replica asked for it: its token says where."""
    user = entry["user"]
    is_ours = user["username"].startswith(f"system:serviceaccount:{installation.NAMESPACE}:")
    return is_ours and bool(user.get("extra", {}).get(NODE_OF_TOKEN) == [replica.node])


def _stays_written(ref: Entry) -> bool:
    of_queue = (ref["resource"], ref.get("subresource")) == ("queues", "status")
    return not of_queue and ref["resource"] not in ("events", "leases")


def _version(item: Entry) -> int:
    return int(item["metadata"]["resourceVersion"])


def charged(claim: Entry, queue: str) -> bool:
    """Whether this version of a claim is charged to the queue."""
    labels = claim["metadata"].get("labels", {})
    is_allocated = "allocation" in claim.get("status", {})
    return is_allocated and bool(labels.get(objects.QUEUE) == queue)
