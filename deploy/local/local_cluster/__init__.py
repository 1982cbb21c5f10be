"""A throw-away real Kubernetes: upstream's own programs, two real kubelets, no traces.

    settings ─► plan (addresses, certificates, configurations, parts) ─► lifecycle
                                    lifecycle ─► builds, network, nodes, processes ─► the machine

Modules named after nouns of the cluster are pure: they say what shall run. Those named
after outside parties (go_toolchain, debian, linux_*, processes) do it. Tests use `api`.
"""
