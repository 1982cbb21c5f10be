"""The door into kube/stores: what other components may use of it."""

from kube.stores.apiserver_store import Store
from kube.stores.apiserver_watch import WatchSettings
from kube.stores.changes import Added, Change, Deleted, Modified
