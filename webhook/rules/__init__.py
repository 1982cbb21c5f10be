"""What is admitted, and what a new pod lacks: one module for each kind of object.

In come a review and the `surroundings`, which are the cluster as it is known at this moment; out go
findings, or edits (`mutations`). Nothing here waits or asks: `apiserver` looks up beforehand what a
rule names. Start reading at `pods`.
"""
