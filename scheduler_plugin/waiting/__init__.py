"""Who goes next: pods at the gate, or refused without one, in fair lines.

In come pods that wait and changes of the world; out comes who may go now and what the others wait
for. Room `lines` says who waits for what, room `turns` which line goes next, room `away` who is out
of line for a while. A line that cannot go is kept (`kept_lines`) and asked again only when its
blockade may have fallen. Start reading at `gates`.
"""
