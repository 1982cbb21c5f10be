"""Answers to kube-scheduler: Filter, Preempt and Bind, over HTTP, while this process may write.

In come kube-scheduler's calls (`http_server`, `http_app`, `messages`); out go verdicts as it reads
them, and bindings for the binder (`kube_scheduler_binds`). `kube_scheduler_backlog` lets only so
many pods be on their way, `leadership` decides whether this process may write, `listening` who may
call. Start reading at `kube_scheduler`.
"""
