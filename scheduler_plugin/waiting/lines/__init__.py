"""Who waits, and for what: pods that every verdict treats alike stand in one line.

In come pods at the gate (`waiting_pods`) and refused ones without a gate (`refused_pods`); out come
lines (`lines`), and the one sum or ceiling that each waits for (`blockades`). Start reading at
`lines`.
"""
