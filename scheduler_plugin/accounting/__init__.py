"""Who is charged what: one ledger over all claims and pods, and what is in flight.

In come views of objects; out come sums for each queue and all above it. Room `queues` is the tree,
room `charges` what the API's objects say, `assumptions` what was decided and is not visible yet,
`holds` what is kept for a pod by name; `facts` are the objects that decide about charges, `books`
hold them and the ledger together, `world` adds what is in flight, and room `figures` tells people.
Start reading at `charges.ledger`.
"""
