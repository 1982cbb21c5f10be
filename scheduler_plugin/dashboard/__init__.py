"""The dashboard: a process of its own, with one page for users who may read the cluster.

    World ──rows──► snapshot, one for all ──what the viewer may list──► viewer
                        │                                                 ▲
    usage now and then ─┴► history                  TokenReview, SubjectAccessReview

Watches keep the world that `kubectl moorage` reads by lists, and Events while a page is open. The
dashboard asks the elected plugin for what only its memory has (`leader`). The output is rows as
JSON, in windows, and a stream that reports changes. The dashboard decides and changes nothing.
`parts` has the lists and the rights that they need, `lines` makes the rows; start reading there.
"""
