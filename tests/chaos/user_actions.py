"""What users and administrators do, at random: objects come, change and go."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from random import Random

from local_cluster.api import ApiError
from local_cluster.apiserver import ApiServer
from tests.chaos import kai_groups, scene, vendors
from tests.chaos.entries import name_of
from tests.chaos.objects import PREFIX, QUEUE, Object
from tests.chaos.scene import CLASSES, LEAVES, NAMESPACES, Scene

MOST_PODS = 14
REFUSED = ": refused: "
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"
PODS = "/api/v1/namespaces/{}/pods"
GROUPS = "/apis/scheduling.run.ai/v2alpha2/namespaces/{}/podgroups"
QUEUES = "/apis/moorage.dev/v1alpha1/queues"
CONFIGURATIONS = f"/apis/akri.sh/v0/namespaces/{scene.HOME}/configurations"
Action = tuple[int, Callable[[], str]]
"""Its weight, and what it does, which is told."""
NODES = ("", "", "", "node-a", "node-b")


@dataclass
class Users:
    """Does one thing after the other; what the API server refuses is told, and no fault."""

    scene: Scene
    api: ApiServer
    random: Random
    numbers: count[int]

    def actions(self) -> list[Action]:
        """Each with its weight; an action says what it did."""
        found: list[Action] = [
            (14, self.make_pod),
            (5, self.delete_pod),
            (4, self.change_queue),
            (1, self.remake_queue),
            (1, self.change_configuration),
            (1, self.remake_configuration),
            (2, self.change_devices),
            (1, self.guard_pods),
            (1, self.label_namespace),
            (1, self.make_group),
            (1, self.delete_group),
        ]
        of_claims: list[Action] = [
            (4, self.make_claim),
            (2, self.delete_claim),
            (1, self.edit_owner),
        ]
        of_workloads: list[Action] = [(2, self.make_workload), (1, self.delete_workload)]
        found += of_claims if self._claims else []
        found += [(1, self.change_hardware)] if self.scene.vendors else []
        return found + (of_workloads if self.scene.has_workloads else [])

    @property
    def _claims(self) -> bool:
        return self.scene.has_claims

    def make_pod(self) -> str:
        namespace = self.random.choice(NAMESPACES)
        there = self._names(PODS.format(namespace))
        if len(there) >= MOST_PODS:
            return self.delete_pod()
        name = f"pod-{next(self.numbers)}"
        body = scene.pod(
            namespace,
            name,
            self._source(namespace),
            self.random.choice((1, 3, 8, 20, 1000)),
            owner=self.random.choice(("", *LEAVES)),
            preemptible=self.random.choice((None, True, True, False)),
            node=self.random.choice(NODES),
        )
        return self._create(PODS.format(namespace), body)

    def _source(self, namespace: str) -> Object:
        resource = {"resource": f"{PREFIX}{self.random.choice(('echo', 'solo'))}"}
        claims = self._names(CLAIMS.format(namespace), "claim-") if self._claims else []
        kinds = ["resource"]
        if self._claims:
            kinds += ["template", "template", *(["claim"] * 4 if claims else [])]
        match self.random.choice(kinds):
            case "claim":
                return {"resourceClaimName": self.random.choice(claims)}
            case "template":
                return {"resourceClaimTemplateName": self.random.choice(self.scene.asked_for)}
            case _:
                return resource

    def make_group(self) -> str:
        """Sometimes with one pod too few."""
        namespace, name = self.random.choice(NAMESPACES), f"group-{next(self.numbers)}"
        least, seconds = self.random.choice((2, 3)), self.random.choice((8, 1000))
        body = kai_groups.group(namespace, name, least, self.random.choice(LEAVES))
        said = [self._create(GROUPS.format(namespace), body)]
        source = (
            {"resourceClaimTemplateName": "echo"} if self._claims else {"resource": "akri.sh/echo"}
        )
        for number in range(least + self.random.choice((-1, 0, 0, 1))):
            member = f"pod-{name}-{number}"
            found = scene.pod(namespace, member, source, seconds, preemptible=True, of_group=name)
            said.append(self._create(PODS.format(namespace), found))
        return "; ".join(said)

    def delete_group(self) -> str:
        return self._delete(GROUPS.format(self.random.choice(NAMESPACES)), "group-")

    def make_workload(self) -> str:
        """Pods that share a claim through their PodGroup, sometimes one of another queue."""
        namespace, name = self.random.choice(NAMESPACES), f"workload-{next(self.numbers)}"
        claims = self._names(CLAIMS.format(namespace), "claim-")
        if not claims:
            return self.make_claim()
        claim, leaf = self.random.choice(claims), self.random.choice(LEAVES)
        body = scene.workload(namespace, name, claim)
        said = [self._create(scene.workloads_path(namespace), body)]
        for number in range(self.random.choice((2, 3, 4))):
            owner = leaf if self.random.random() < 0.9 else self.random.choice(LEAVES)
            found = scene.pod(
                namespace,
                f"pod-{name}-{number}",
                {"resourceClaimName": claim},
                self.random.choice((3, 8, 20)),
                owner=owner,
                preemptible=self.random.choice((True, True, False)),
            )
            said.append(self._create(PODS.format(namespace), scene.member_of(name, found)))
        return "; ".join(said)

    def delete_workload(self) -> str:
        return self._delete(scene.workloads_path(self.random.choice(NAMESPACES)), "workload-")

    def delete_pod(self) -> str:
        namespace = self.random.choice(NAMESPACES)
        grace = self.random.choice(("", "", "?gracePeriodSeconds=0"))
        return self._delete(PODS.format(namespace), "pod-", grace)

    def make_claim(self) -> str:
        namespace = self.random.choice(NAMESPACES)
        of_class = self.random.choice(self.scene.asked_for)
        owner = self.random.choice(("", "", *LEAVES))
        body = scene.claim(namespace, f"claim-{next(self.numbers)}", of_class, owner)
        return self._create(CLAIMS.format(namespace), body)

    def delete_claim(self) -> str:
        return self._delete(CLAIMS.format(self.random.choice(NAMESPACES)), "claim-")

    def edit_owner(self) -> str:
        """A user tries to have another queue charged, which nobody may."""
        path = CLAIMS.format(self.random.choice(NAMESPACES))
        owner = self.random.choice((None, *LEAVES))
        names = self._names(path)
        if not names:
            return "no claim to edit"
        body = {"metadata": {"labels": {QUEUE: owner}}}
        return self._patch(f"{path}/{self.random.choice(names)}", body)

    def change_queue(self) -> str:
        name = self.random.choice((*LEAVES, "org"))
        spec = json.loads(json.dumps(self.scene.queues()[name]))
        for entry in spec["resources"]:
            quota = self.random.choice((0, 1, 2, 3))
            limit = self.random.choice((-1, quota, quota + 2))
            entry["quota"] = vendors.amount(name_of(entry), quota)
            entry["limit"] = vendors.amount(name_of(entry), limit)
            entry["overQuotaWeight"] = self.random.choice((0, 1, 1, 2))
        policy = self.random.choice(("Allow", "Allow", "Deny"))
        spec["claimSharing"] = {"policy": policy, "queues": self.random.choice(([], ["red"]))}
        return self._patch(f"{QUEUES}/{name}", {"spec": spec})

    def remake_queue(self) -> str:
        """A leaf goes that nobody uses at the moment, and comes again with what it had."""
        said = "no queue"
        for name in self.random.sample(LEAVES, len(LEAVES)):
            if name not in self._names(QUEUES):
                return self._create(QUEUES, scene.queue(name, self.scene.queues()[name]))
            said = self._delete(QUEUES, name)
            if REFUSED not in said:
                break
        return said

    def change_configuration(self) -> str:
        capacity = self.random.choice((1, 2, 3, 4))
        return self._patch(f"{CONFIGURATIONS}/echo", {"spec": {"capacity": capacity}})

    def remake_configuration(self) -> str:
        name = self.random.choice(CLASSES)
        if name in self._names(CONFIGURATIONS):
            return self._delete(CONFIGURATIONS, name)
        spec = self.scene.configurations()[name]
        return self._create(CONFIGURATIONS, scene.configuration(name, spec))

    def change_devices(self) -> str:
        if len(self.scene.disks) > 1 or (self.scene.disks and self.random.random() < 0.3):
            disk = self.random.choice(self.scene.disks)
            try:
                self.scene.unplug(disk)
            except OSError as error:
                self.scene.disks.append(disk)
                return f"unplug {disk.name}: {error}"
            return f"unplug {disk.name}"
        self.scene.plug()
        return f"plug {self.scene.disks[-1].name}"

    def change_hardware(self) -> str:
        assert self.scene.vendors
        return self.scene.vendors.change_hardware(self.random)

    def guard_pods(self) -> str:
        namespace = self.random.choice(NAMESPACES)
        path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
        if self._names(path):
            return self._delete(path, "guard")
        spec: Object = {"minAvailable": self.random.choice((1, 2)), "selector": {}}
        body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec}
        return self._create(path, {**body, "metadata": {"name": "guard"}})

    def label_namespace(self) -> str:
        name, leaf = self.random.choice(NAMESPACES), self.random.choice(LEAVES)
        return self._patch(f"/api/v1/namespaces/{name}", {"metadata": {"labels": {QUEUE: leaf}}})

    def restore(self) -> None:
        """Queues and Configurations that are gone come again, so that a round has work."""
        for name, spec in self.scene.queues().items():
            if name not in self._names(QUEUES):
                self._create(QUEUES, scene.queue(name, spec))
        for name, spec in self.scene.configurations().items():
            if name not in self._names(CONFIGURATIONS):
                self._create(CONFIGURATIONS, scene.configuration(name, spec))

    def _names(self, path: str, prefix: str = "") -> list[str]:
        names = (body["metadata"]["name"] for body in self.api.get(path)["items"])
        return sorted(name for name in names if name.startswith(prefix))

    def _create(self, path: str, body: Object) -> str:
        what = f"create {body['kind']} {body['metadata']['name']} {_told(body)}"
        return self._done(what, lambda: self.api.create(path, body))

    def _patch(self, path: str, body: Object) -> str:
        what = f"patch {path.rpartition('/')[2]} {json.dumps(body)}"
        return self._done(what, lambda: self.api.patch(path, body))

    def _delete(self, path: str, prefix: str, options: str = "") -> str:
        names = self._names(path, prefix)
        if not names:
            return "nothing to delete"
        name = self.random.choice(names)
        what = f"delete {path.rpartition('/')[2]} {name}{options}"
        return self._done(what, lambda: self.api.delete(f"{path}/{name}{options}"))

    def _done(self, what: str, call: Callable[[], object]) -> str:
        try:
            call()
        except ApiError as error:
            return f"{what}{REFUSED}{error}"
        return what


def _told(body: Object) -> str:
    spec = body.get("spec", {})
    if body["kind"] != "Pod":
        return json.dumps(spec)
    (container,) = spec["containers"]
    source = spec.get("resourceClaims") or container["resources"]
    return f"{body['metadata']['labels']} {json.dumps(source)} {container['command'][-1]}"
