"""Reads of the cluster for short commands, as a door of their own beside `api`.

They go through the user's kubectl, and import neither an HTTP client nor TLS. See room `kubectl`.
"""

from kube.calls.apiserver_reads import ApiReader as ApiReader
from kube.calls.errors import ApiError as ApiError
from kube.calls.errors import ForbiddenError as ForbiddenError
from kube.calls.errors import GoneError as GoneError
from kube.calls.errors import KubeconfigError as KubeconfigError
from kube.calls.errors import NotFoundError as NotFoundError
from kube.kubectl.client import KubectlClient as KubectlClient
from kube.kubectl.client import finished as finished
from kube.kubectl.kubeconfig import Choice as Choice
from kube.kubectl.kubeconfig import choice_of as choice_of
from kube.kubectl.proxy import KubectlProxy as KubectlProxy
from kube.kubectl.proxy import started as started
from kube.objects import JsonObject as JsonObject
from kube.wall_clock import wall_clock as wall_clock
