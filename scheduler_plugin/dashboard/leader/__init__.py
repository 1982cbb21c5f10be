"""What only the memory of the elected plugin has, sent to the dashboard over mutual TLS.

    plugin:     GateWriter, Holds ──► answers ──► http_answers ─────────── GET ──┐
    both:       Secret ──► credentials ──► apiserver_credentials                 │
    dashboard:  Lease ──holder──► pod ──its IP──► http_leader ◄──── PodAnswer ───┘

The plugin imports `http_answers` and what is beneath it, the dashboard `http_leader`. Start reading
at `answers`.
"""
