"""Admission of waiting pods: pods at the gate and refused pods without a gate, in fair order.

Input: pods that wait, and changes of the world. Output: the pods to admit now, and what each other
pod waits for. Room `classes` groups pods into equivalence classes, room `order` sorts these,
and room `deferred` keeps the pods that are assumed or back off. An inadmissible class is blocked
(`blocked_classes`) and judged again only when its limiting quota may have room.
Start reading at `gates`.
"""
