"""Equivalence classes of waiting pods: every verdict is the same for all pods of a class.

Input: pods at the gate (`waiting_pods`) and refused pods without a gate (`refused_pods`). Output:
the classes (`pod_classes`), and the limiting quota of each inadmissible one (`inadmissible`).
Start reading at `pod_classes`.
"""
