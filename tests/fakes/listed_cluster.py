"""A fake API server of one cluster: it lists what it was given, and forbids what it is told to."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.fakes.fake_kubectl import fake_kubectl
from tests.fakes.scripted_apiserver import serving
from tests.scheduler_plugin.kubectl.snapshots import RUN


@dataclass
class FakeCluster:
    """Objects by their plural; a list of a plural in `forbidden` is for one namespace alone.

    Attributes:
        hidden: Plurals that may be listed nowhere.
        hidden_groups: Groups of the API of which nothing may be read.
    """

    objects: Mapping[str, list[dict[str, Any]]]
    forbidden: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    hidden_groups: frozenset[str] = frozenset()
    kubeconfig: Path = Path()
    asked: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        if request.path == "/version":
            date = {"Date": "Sat, 21 Nov 2026 00:00:00 GMT"}
            return web.json_response({"gitVersion": "v1.36.3"}, headers=date)
        words = request.path.strip("/").split("/")
        if words[1] in self.hidden_groups:
            return _failed(403, "Forbidden", f"{words[1]} is forbidden")
        if words[0] == "apis" and len(words) < 4:
            return self._discovery(words)
        words = words[2:] if words[0] == "api" else words[3:]
        namespace = ""
        if words[0] == "namespaces" and len(words) > 2:
            _, namespace, *words = words
        return self._found(words, namespace, request)

    def _discovery(self, words: list[str]) -> web.Response:
        """The versions of a group, or the resources of a version; all groups have the same."""
        if len(words) == 2:
            return web.json_response({"versions": [{"version": "v1alpha2"}]})
        return web.json_response({"resources": [{"name": plural} for plural in self.objects]})

    def _found(self, words: list[str], namespace: str, request: web.Request) -> web.Response:
        plural = words[0]
        if plural in self.hidden or (plural in self.forbidden and not namespace):
            return _failed(403, "Forbidden", f"{plural} is forbidden: at the cluster scope")
        if plural not in self.objects:
            return _failed(404, "NotFound", f"no {plural}")
        found = [
            obj
            for obj in self.objects[plural]
            if not namespace or obj["metadata"].get("namespace") == namespace
        ]
        if len(words) > 1:
            named = [obj for obj in found if obj["metadata"]["name"] == words[1]]
            return web.json_response(named[0]) if named else _failed(404, "NotFound", words[1])
        selected = [obj for obj in found if _matches(obj, request.query)]
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": selected})

    async def ask(self, *words: str, run: str = RUN, **environment: str) -> tuple[int, str, str]:
        """The status of `kubectl moorage`, and what it wrote; a kubectl is on PATH."""
        kubectl = fake_kubectl(self.kubeconfig.parent)
        path = f"{kubectl}{os.pathsep}{os.defpath}"
        own = {k: v for k, v in os.environ.items() if not k.startswith(("MOORAGE_", "KUBE"))}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", run, *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**own, "PATH": path, "KUBECONFIG": str(self.kubeconfig), **environment},
        )
        out, err = await process.communicate()
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()


def _failed(code: int, reason: str, message: str) -> web.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return web.json_response(body, status=code)


def _matches(obj: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    labels = obj["metadata"].get("labels") or {}
    wanted = dict(one.split("=") for one in query.get("labelSelector", "").split(",") if one)
    fields = dict(one.split("=") for one in query.get("fieldSelector", "").split(",") if one)
    return labels.items() >= wanted.items() and all(
        _at(obj, path.split(".")) == value for path, value in fields.items()
    )


def _at(obj: Any, path: list[str]) -> Any:
    return _at(obj.get(path[0]) or {}, path[1:]) if path else obj


@asynccontextmanager
async def fake_cluster(folder: Path, cluster: FakeCluster) -> AsyncIterator[FakeCluster]:
    async with serving(cluster.answer, folder) as cluster.kubeconfig:
        yield cluster
