"""Calls to the API server: one request, and one response or one error.

`apiserver` is the client, over one pool of connections (`apiserver_transport`) with the pod's own
credentials or those of a kubeconfig (`apiserver_access`). `requests` builds the HTTP request of
each verb, `errors` sorts failures by what the caller should do, and `frames` parses the lines of a
watch. A component with rare but urgent calls keeps one connection ready (`apiserver_warm`). Start
reading at `apiserver`.
"""
