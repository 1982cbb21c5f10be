"""`kubectl moorage`: the command line of who asks what a cluster does with its devices.

`commands` has a function for each view, and `main` runs it: on a snapshot (`snapshot_files`), or on
the cluster (`live`), which `cluster_views`, `why` and `versions` read through the user's kubectl,
or `connected` by a client of its own; `release` tells what the plugin was told, and `printing`
prints. `completion` is what kubectl asks when a user presses Tab. What is told is room `asking`'s
and `viewing`'s. A call lasts a moment and spends it on imports, so each module imports at its head
what every call needs, and what one view needs when it is asked for. Start reading at `commands`.
"""
