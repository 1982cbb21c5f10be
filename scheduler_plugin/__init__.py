"""The scheduler plugin: charges every claim once, to the right queue.

    API server ──objects──► cluster ──views──► accounting: who is charged what
    kube-scheduler ──Filter, Preempt, Bind──► extender ──► judging: may it? ──► binder
    pods that wait ──► waiting: who goes next? ──► binder ──gates, conditions──► API server
    a queue lacks what its quota guarantees ──► reclaiming: whose claims go? ──► binder
    somebody leaves a claim ──► keeping: what becomes of it? ──► binder
    programs, probes ──GET──► pages: figures, and places in line
    people ──GET──► dashboard, a process of its own: what `kubectl moorage` reads, as one page

Rooms import only rooms below them: `checking` and `dashboard`, `extender` and `pages`, `cluster`,
`waiting`, `keeping` and `reclaiming`, `judging`, `accounting`, `objects`. `serve_main` and
`dashboard_main` put them together.
Start reading at `judging.verdicts.judge`.
"""
