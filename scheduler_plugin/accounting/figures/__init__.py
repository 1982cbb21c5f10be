"""The status of Queues.

Input is the world; output is usage and conditions (`queue_status`), and the fair share of each
queue (`share_figures`, from `fair_shares` and `apportionment`). Room `reclaiming` uses the fair
shares, too; no other decision depends on this room. Start reading at `queue_status`.
"""
