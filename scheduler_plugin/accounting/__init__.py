"""Who is charged what: one ledger over all claims and pods, and what is in flight.

In come views of objects; out come sums for each queue and all above it (`totals`). `queues` is the
tree, `owners` says whose a claim is, `costs` what it costs, `ledger` what the API's objects
say, `assumptions` what was decided and is not visible yet, `shares` what each queue would have if
devices were given anew (`share_figures` for the status); `world` holds all of it together. Start
reading at `ledger`.
"""
