"""People with a browser and a token of their own, who look at the dashboard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from local_cluster import service_accounts
from tests.e2e.sharing import browsers, dashboards
from tests.e2e.sharing.browsers import Board
from tests.e2e.sharing.stories import Story

READ = {
    "queues": "moorage.dev",
    "resourceclaims": "resource.k8s.io",
    "pods": "",
    "instances": "akri.sh",
    "events": "events.k8s.io",
}


@dataclass
class Viewers:
    """People with tokens of their own.

    Attributes:
        url: Where the dashboard is.
        new_page: Opens a browser without any past.
    """

    story: Story
    url: str
    new_page: Any
    roles: list[str] = field(default_factory=list)

    def token(self, name: str, *resources: str, verbs: tuple[str, ...] = ("list",)) -> str:
        """Of a ServiceAccount that may list these."""
        story = self.story
        meta = {"name": f"{name}-{story.namespace}"}
        self.roles.append(meta["name"])
        rules = [
            {"apiGroups": [READ[resource]], "resources": [resource], "verbs": list(verbs)}
            for resource in resources
        ]
        subject = {"kind": "ServiceAccount", "name": name, "namespace": story.namespace}
        api = "rbac.authorization.k8s.io"
        ref = {"apiGroup": api, "kind": "ClusterRole", **meta}
        ref_name = {"apiVersion": f"{api}/v1", "metadata": meta}
        story.cluster.apply(
            [
                {**ref_name, "kind": "ClusterRole", "rules": rules},
                {**ref_name, "kind": "ClusterRoleBinding", "roleRef": ref, "subjects": [subject]},
            ]
        )
        self._wait_may(f"system:serviceaccount:{story.namespace}:{name}", resources[-1], verbs[0])
        with story.cluster.api() as api_server:
            return service_accounts.request_token(api_server, story.namespace, name, None)

    def _wait_may(self, user: str, resource: str, verb: str) -> None:
        """The API server hears of roles a moment later; the dashboard remembers a no for 30 s."""
        kind = f"{resource}.{READ[resource]}".rstrip(".")
        asked = ("auth", "can-i", verb, kind, "--all-namespaces", f"--as={user}")
        cluster = self.story.cluster
        self.story.until(
            f"{user} may {verb} {kind}",
            lambda: cluster.kubectl(*asked, check=False).returncode == 0,
        )

    def board(self, token: str, **options: Any) -> Board:
        board = Board(self.new_page(**options), self.url)
        board.sign_in(token)
        return board


@contextmanager
def looking(
    story: Story, relay: str = browsers.RELAY, ports: Sequence[int] = (dashboards.PORT,)
) -> Iterator[Viewers]:
    """By way of a relay, to the first of the node's ports that answers."""
    cluster = story.cluster
    with browsers.reached(cluster, relay, ports) as url, browsers.browser(cluster) as browser:
        found = Viewers(story, url, browser.new_page)
        yield found
        for name in found.roles:
            story.cluster.kubectl("delete", "clusterrole,clusterrolebinding", name)
