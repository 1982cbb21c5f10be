"""The only door into the binder."""

from binder.apiserver import Binder

__all__ = ["Binder"]
