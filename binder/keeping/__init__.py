"""Claims kept in order: what a claim needs next is done, soon and for certain.

In come changed claims; whom to look at, and when, is the agenda's (`agenda`), what is needed the
scheduler plugin's decision, and it is done step by step (`apiserver_steps`). Start reading at
`apiserver_keeper`.
"""
