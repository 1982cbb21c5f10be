"""The only door into kube: everything that other components may use."""

from kube.backoff import Backoff
from kube.calls.apiserver import ApiClient, connect
from kube.calls.apiserver_warm import keep_warm
from kube.calls.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    KubeconfigError,
    NotFoundError,
    PermanentError,
    RetryableError,
    ServerFaultError,
    UnauthorizedError,
    UnavailableError,
)
from kube.calls.requests import Preconditions, WriteOptions
from kube.cel.processes import CelProcess, NotEvaluatedError, TooSlowError, digest_of
from kube.client_semaphore import ClientSemaphore
from kube.events.apiserver_events import EventRecorder
from kube.events.event_series import Event, EventType, ObjectReference
from kube.fair_limit import FairLimit
from kube.key_locks import KeyLocks
from kube.kinds import (
    ACCESS_REVIEWS,
    BUDGETS,
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    CONFIGURATIONS,
    DAEMON_SETS,
    DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    INSTANCES,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NODES,
    PODS,
    QUEUES,
    SECRETS,
    SLICES,
    TEMPLATES,
    VALIDATING_WEBHOOKS,
)
from kube.leases.apiserver_leases import (
    ElectionSettings,
    LeaderElector,
    LeadershipLostError,
    LeaseWatcher,
)
from kube.leases.leases import LeaseView
from kube.live_tls import (
    CertificateError,
    LiveTls,
    TlsCredential,
    TlsFiles,
    client_context,
    follow_files,
    show_files,
)
from kube.loopback import is_loopback, why_not_under
from kube.objects import JsonObject, ObjectKey
from kube.processes.command_settings import (
    Kubeconfig,
    LogFormat,
    LogLevel,
    TracingEndpoint,
    commands,
    not_empty,
    parsed,
    refuse,
    settings_of,
)
from kube.processes.file_settings import Config, settings_in
from kube.processes.opentelemetry import note_span, now_ns, trace_to
from kube.processes.processes import log_context, log_to_stderr, run_process
from kube.processes.stuck_processes import STUCK_SECONDS
from kube.reconciling.keyed_backoff import KeyedBackoff
from kube.reconciling.prometheus_queues import REGISTRY as WORK_QUEUE_FIGURES
from kube.reconciling.reconcilers import Reconciler
from kube.reconciling.results import After, Done, Failed, Result, failed_call
from kube.resources import ObjectPath, Resource, Selection
from kube.stores.apiserver_store import Store
from kube.stores.apiserver_watch import WatchSettings
from kube.stores.changes import Added, Change, Deleted, Modified
from kube.wall_clock import wall_clock
