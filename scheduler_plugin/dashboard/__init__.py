"""The dashboard: a process of its own, with one page for people whom the cluster lets read.

    World ──rows──► snapshot, one for all ──what the viewer may list──► viewer
                        │                                                 ▲
    usage now and then ─┴► history                  TokenReview, SubjectAccessReview

In flow the world, kept by watches as `kubectl moorage` reads it by lists, and, while a page is
watched, Events. What only the memory of the elected plugin knows it is asked for (`leader`). Out
flow rows as JSON, in windows, and word that they changed. The dashboard decides and changes
nothing. `parts` says what is shown and which right it takes, `lines` makes the rows; start reading
there.
"""
