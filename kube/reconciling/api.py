"""The door into kube/reconciling: what other components may use of it."""

from kube.reconciling.keyed_backoff import KeyedBackoff
from kube.reconciling.prometheus_queues import REGISTRY as WORK_QUEUE_FIGURES
from kube.reconciling.reconcilers import Reconciler
from kube.reconciling.results import After, Done, Failed, Result, failed_call
