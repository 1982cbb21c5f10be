"""A real Prometheus on a node, which is asked from there, as it listens on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from local_cluster.api import Cluster, Component, Mode
from local_cluster.debian import ensure_packages

URL = "http://127.0.0.1:19090"


class Prometheus:
    """One that scrapes once a second."""

    def __init__(self, cluster: Cluster, node: str) -> None:
        self._node = cluster.node(node)

    def asked(self, path: str) -> Any:
        ask = ("wget", "-q", "-T", "5", "-O", "-", f"{URL}{path}")
        done = self._node.exec(ask, check=False)
        return json.loads(done.stdout)["data"] if done.returncode == 0 else None

    def values(self, query: str) -> dict[str, float]:
        """What a query has now, by job."""
        found = self.asked(f"/api/v1/query?query={quote(query)}")
        results = found["result"] if found else []
        return {one["metric"].get("job", ""): float(one["value"][1]) for one in results}

    def value(self, query: str) -> float | None:
        """The one value that a query has now."""
        found = self.asked(f"/api/v1/query?query={quote(query)}")
        results = found["result"] if found else []
        return float(results[0]["value"][1]) if len(results) == 1 else None


@contextmanager
def scraping(
    cluster: Cluster, node: str, folder: Path, jobs: Sequence[Any], **options: Any
) -> Iterator[Prometheus]:
    """Scrape these jobs; options are further parts of Prometheus' configuration."""
    ensure_packages({"prometheus": "prometheus"})
    times = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    file = folder / "prometheus.yaml"
    file.write_text(yaml.safe_dump({"global": times, "scrape_configs": list(jobs), **options}))
    flags = (
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={URL.partition('//')[2]}",
    )
    component = Component(name="prometheus", argv=("prometheus", *flags), node=node, cwd=folder)
    handle = cluster.start_component(component, Mode.PROCESS)
    try:
        yield Prometheus(cluster, node)
    finally:
        handle.stop()
