"""Pods that are not in the queue for a while: assumed pods, and pods that back off.

`deferred_pods` holds both, `pod_backoffs` computes the back-off after failures, and `untried_pods`
restores the assumptions of an earlier process.
"""
