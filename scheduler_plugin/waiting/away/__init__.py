"""Pods that are out of their line for a while.

Those that were let go and those that rest (`away_pods`), because their binding failed again and
again (`resting_pods`), and those that an earlier process let go (`untried_pods`).
"""
