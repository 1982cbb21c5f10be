"""Reads of the cluster by the user's own kubectl, for a command that runs for a moment.

    command ──HTTP over a unix socket──► kubectl proxy ──credentials, TLS──► API server

kubectl reads the kubeconfig, with its exec plugins and OIDC, while the command imports what it
shows, so that the command needs no HTTP client, TLS and loop of its own. `proxy` starts and ends
kubectl, `client` asks, `http_answers` reads what comes back, and `kubeconfig` tells the current
namespace. Start reading at `client`.
"""
