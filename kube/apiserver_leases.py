"""The Lease of somebody else, such as kube-scheduler's."""

import asyncio
import logging

from kube import leases
from kube.apiserver import ApiClient
from kube.errors import ApiError, NotFoundError
from kube.kinds import LEASES
from kube.leases import LeaseView, Sighting

log = logging.getLogger(__name__)


class LeaseWatcher:
    """Follows the Lease of somebody else, such as kube-scheduler's, by being polled.

    That is on purpose. A watch that lags behind would make an old Lease look fresh; a poll
    bounds the moment of a renewal from both sides. A Lease is renewed every two seconds anyway.
    """

    def __init__(
        self, client: ApiClient, name: str, namespace: str, *, timeout_seconds: float = 5.0
    ) -> None:
        self._client = client
        self._path = LEASES.at(name, namespace)
        self._timeout_seconds = timeout_seconds
        self._sighting: Sighting | None = None

    def view(self) -> LeaseView:
        """Return what is certain at this moment; nobody's, if the Lease was never seen."""
        if self._sighting is None:
            return LeaseView("", 0.0, 0.0)
        return leases.view(self._sighting, now=_now())

    async def poll(self) -> None:
        asked_at = _now()
        try:
            obj = await self._client.get(self._path, timeout_seconds=self._timeout_seconds)
        except NotFoundError:
            self._sighting = None
        except ApiError as error:
            # What was seen stays true; its time runs out by itself.
            log.warning("lease not read lease=%s error=%s", self._path, error)
        else:
            lease = leases.parse_lease(obj)
            self._sighting = leases.see(self._sighting, lease, asked_at=asked_at, now=_now())


def _now() -> float:
    return asyncio.get_running_loop().time()
