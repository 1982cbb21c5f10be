"""Answers to kube-scheduler: Filter, Preempt and Bind, over HTTP, while this process may write.

kube-scheduler's calls come in (`http_server`, `http_app`, `messages`). Verdicts in its own format
go out, and bindings go to the binder (`kube_scheduler_binds`, with the reads of
`apiserver_reads`). `kube_scheduler_backlog` bounds the pods in flight, `leadership` decides whether
this process may write, and `listening` decides which clients may call. Start reading at
`kube_scheduler`.
"""
