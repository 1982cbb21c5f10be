"""The door into kube/processes: what other components may use of it."""

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
