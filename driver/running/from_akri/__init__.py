"""What becomes of an Akri that runs in a cluster: `moorage-driver from-akri` prints it.

In come the values of its release (`values`) and its Configurations, Instances and their users
(`configurations`); out comes what is the same, what is called otherwise, and what needs a hand
(`changes`). Nothing is written.
"""
