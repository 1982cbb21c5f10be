"""The only door into the binder."""

from binder.apiserver import Binder
from binder.keeping.apiserver_gangs import GangController
from binder.keeping.apiserver_keeper import ClaimController
from binder.reclaiming.apiserver_reclaims import ReclaimConfig, Reclaimer
from binder.reclaiming.prometheus_reclaims import REGISTRY as RECLAIM_FIGURES
