"""The scheduler plugin: charges every claim once, to the right queue.

    API server ──objects──► cluster ──views──► accounting: who is charged what
    kube-scheduler ──Filter, Preempt, Bind──► extender ──► judging: may it? ──► binder
    pending pods ──► waiting: the next to admit ──► binder ──gates, conditions──► API server
    a queue below its quota ──► reclaiming: pods to evict ──► binder
    a stale claim, an owner exit ──► cleanup: the next step ──► binder
    programs, probes ──GET──► pages: metrics, health, positions in the queue
    users ──GET──► dashboard, a separate process: the data of `kubectl moorage` as one page

Rooms import only rooms below them: `checking` and `dashboard`, `extender` and `pages`, `cluster`,
`waiting`, `cleanup` and `reclaiming`, `judging`, `accounting`, `objects`. `serve_main` and
`dashboard_main` put them together.
Start reading at `judging.verdicts.judge`.
"""
