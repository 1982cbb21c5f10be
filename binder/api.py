"""The only door into the binder."""

from binder.apiserver import Binder
from binder.apiserver_keeper import ClaimKeeper
from binder.apiserver_reclaims import Reclaimer
