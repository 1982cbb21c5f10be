"""The fake API server with the Secret of both processes, a Lease, and pods."""

from __future__ import annotations

from collections.abc import Mapping

from kube.kinds import LEASES, PODS, SECRETS
from kube.resources import ObjectPath
from tests.fakes.apiserver import FakeApiServer

SECRET = SECRETS.at("moorage-dashboard-tls", "moorage-system")
LEASE = LEASES.at("moorage-scheduler", "moorage-system")
LEADER = PODS.at("leader", "moorage-system")


class FakeLeaderServer(FakeApiServer):
    """Pod `leader` holds the Lease, and is here."""

    def __init__(self, data: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.data = dict(data or {})
        self.hold("leader_2f1c")
        self.put_pod("leader", "127.0.0.1")

    @property
    def data(self) -> dict[str, str]:
        """Of the Secret."""
        return dict(self.get(SECRET)["data"])

    @data.setter
    def data(self, data: Mapping[str, str]) -> None:
        self.put(SECRETS, {"metadata": _metadata(SECRET), "data": dict(data)})

    def hold(self, holder: str) -> None:
        """Give the Lease to a holder."""
        self.put(LEASES, {"metadata": _metadata(LEASE), "spec": {"holderIdentity": holder}})

    def put_pod(self, name: str, address: str) -> None:
        metadata = _metadata(PODS.at(name, LEASE.namespace))
        self.put(PODS, {"metadata": metadata, "status": {"podIP": address}})


def _metadata(path: ObjectPath) -> dict[str, str]:
    return {"name": path.name, "namespace": path.namespace, "uid": "u"}
