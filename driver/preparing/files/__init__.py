"""The files of a prepared claim on the node's disk.

A CDI file defines what the container runtime adds to the containers of a claim, and has the claim's
record. Metadata files have the data of devices that containers may read. Start reading at
`prepared`.
"""
