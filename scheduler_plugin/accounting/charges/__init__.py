"""The charges of queues that follow from API objects alone.

Input is claims and pods; output is the owner of a claim (`owners`), its cost (`costs`), and the
charges of each queue, where each claim counts once (`ledger`). Decisions in flight are not part of
it. Start reading at `ledger`.
"""
