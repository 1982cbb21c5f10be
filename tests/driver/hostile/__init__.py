"""Whoever speaks to the driver's sockets may say anything: the driver goes on, and does not grow.

    make hostile-test     ten minutes for each socket; `make unit` tries a few messages of each

Real sockets of processes that serve; the messages are made of the descriptors of the services.
"""
