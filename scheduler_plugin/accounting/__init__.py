"""The charges of all queues: one ledger over all claims and pods, and the decisions in flight.

Input is views of objects; output is the usage of each queue and its ancestors. Room `queues` has
the tree, room `charges` what API objects are charged, `assumptions` the decisions that no API
object shows yet, `holds` what is held for single pods. `facts` has the objects that decide about
charges, `books` the facts and the ledger together, `world` adds the decisions in flight, and room
`figures` derives the status of Queues. Start reading at `charges.ledger`.
"""
