"""Admission of waiting pods: pods at the gate and refused pods without a gate, in fair order.

Input: pods that wait, and changes of the world. Output: the pods to admit now, and what each other
pod waits for. Room `lines` groups pods into equivalence classes, room `turns` sorts these,
and room `away` keeps the pods that are assumed or back off. An inadmissible class is blocked
(`kept_lines`) and judged again only when its limiting quota may have room.
Start reading at `gates`.
"""
