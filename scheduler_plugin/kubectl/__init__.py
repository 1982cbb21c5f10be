"""`kubectl moorage`: the command line about a cluster's devices, claims and queues.

`commands` has a function for each view, `options` has their flags, and `main` runs the view on a
snapshot (`snapshot_files`) or on the cluster (`live`). `cluster_views`, `why` and `versions` read
the cluster through the user's kubectl, or `connected` through a client of its own. `release` reads
the flags of the release's plugin, and `printing` prints. kubectl runs `completion` when a user
presses Tab. The content comes from the rooms `asking` and `viewing`. Imports are most of the time
of a command, so each module imports at its head only what every command needs. Start reading at
`commands`.
"""
