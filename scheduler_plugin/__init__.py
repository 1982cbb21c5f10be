"""The scheduler plugin: charges every claim once, to the right queue.

    objects of the API ──views──► world ──► facts ──► ledger, assumptions
    pod, claims, world ──verdicts.judge──► Admitted ──bind_request──► binder
                                      └──► Refused(reason, sentence)

All of it is pure; nothing runs yet. Start reading at `verdicts.judge`.
"""
