"""The scheduler plugin: charges every claim once, to the right queue.

    API server ──objects──► cluster ──views──► accounting: who is charged what
    kube-scheduler ──Filter, Preempt, Bind──► extender ──► judging: may it? ──► binder
    pods that wait ──► waiting: who goes next? ──► binder ──gates, conditions──► API server
    a queue lacks what its quota guarantees ──► reclaiming: whose claims go? ──► binder
    somebody leaves a claim ──► keeping: what becomes of it? ──► binder
    people, programs, probes ──GET──► pages: what is known of who waits

Rooms import only rooms below them: `checking`, `extender` and `pages`, `cluster`, `waiting`,
`keeping` and `reclaiming`, `judging`, `accounting`, `objects`. `serve_main` puts them together.
Start reading at `judging.verdicts.judge`.
"""
