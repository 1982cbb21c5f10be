"""What is written of a prepared claim on the node's disk, and read again.

The checkpoint says which claim has which devices; a CDI file, what the container runtime gives to
containers; metadata files, what containers may read of their devices. Start reading at `prepared`.
"""
