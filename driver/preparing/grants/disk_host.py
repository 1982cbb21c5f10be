"""Checks paths in the file system of this host."""

from __future__ import annotations

from driver.handlers.report_limits import mount_refusal
from driver.plumbing.disk import real_path, real_paths
from driver.preparing.grants.renewals import OnHost, Resolve


def on_this_host(mounts: tuple[str, ...] = (), resolve: Resolve = real_path) -> OnHost:
    """The checks of this host. `mounts`: folders below which paths may be mounted."""
    return OnHost(resolve, lambda path: mount_refusal(path, mounts, real_paths([path])))
