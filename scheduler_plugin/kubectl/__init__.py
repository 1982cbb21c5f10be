"""`kubectl moorage`: the command line of who asks what a cluster does with its devices.

`commands` has a function for each view, `main` reads the cluster once, or a snapshot of it, and
prints; `completion` is what kubectl asks when somebody presses Tab. What is told is
room `asking`'s and `viewing`'s. Start reading at `commands`.
"""
