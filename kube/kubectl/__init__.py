"""Reads of the cluster through the user's own kubectl, for short commands.

    command ──HTTP over a unix socket──► kubectl proxy ──credentials, TLS──► API server

kubectl reads the kubeconfig, with its exec plugins and OIDC, while the command imports its other
modules. So the command needs no HTTP client, TLS and event loop of its own. `proxy` starts and ends
kubectl, `client` sends requests, `http_answers` parses responses, and `kubeconfig` finds the
current namespace. Start reading at `client`.
"""
