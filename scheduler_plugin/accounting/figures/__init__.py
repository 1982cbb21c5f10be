"""What a Queue's status says of it.

In comes the world; out come usage and what is odd (`queue_status`), and what each queue would have
if devices were given anew, looked at now and then (`share_figures`). Nothing is admitted by these.
Start reading at `queue_status`.
"""
