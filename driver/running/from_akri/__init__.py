"""The report of `moorage-driver from-akri`: what changes if Moorage replaces the Akri of a cluster.

The input is the values of Akri's release (`values`), and its Configurations, Instances and their
users (`configurations`). The output is what stays the same, what has another name, and what the
administrator must do (`changes`). Nothing is written to the cluster.
"""
