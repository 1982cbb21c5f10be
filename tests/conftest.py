"""Settings for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

pytest_plugins = ["local_cluster.fixtures"]

# These machines are shared and noisy: how long a draw or an example takes says nothing here.
settings.register_profile(
    "moorage", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("moorage")
