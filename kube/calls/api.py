"""The door into kube/calls: what other components may use of it."""

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
