"""The door into kube/leases: what other components may use of it."""

from kube.leases.apiserver_leases import (
    ElectionSettings,
    LeaderElector,
    LeadershipLostError,
    LeaseWatcher,
)
from kube.leases.leases import LeaseView
