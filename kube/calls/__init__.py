"""One call out to the API server, one answer or one error back.

`apiserver` is the client, over one pool of connections (`apiserver_transport`) with the pod's own
credentials or a kubeconfig's (`apiserver_access`); `requests` says what each verb looks like,
`errors` what can go wrong and what to do then, `frames` what a line of a watch says. A component
whose calls are rare, and waited for, keeps one connection ready (`apiserver_warm`). Start reading
at `apiserver`.
"""
