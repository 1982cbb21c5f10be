"""The dashboard: one page on the readable port, for people whom the cluster lets read.

    World ──rows──► snapshot, one for all ──what he may list──► viewer
                        │                                         ▲
    usage now and then ─┴► history          TokenReview, SubjectAccessReview

In flow the world and, while a page is watched, the Events of all replicas. What the leader alone
knows a replica that stands by asks of it (`http_leader`). Out flow rows as JSON, in windows, and
word that they changed. It decides and changes nothing. `parts` says what is shown and what it
takes to see it, `lines` makes the rows; start reading there.
"""
