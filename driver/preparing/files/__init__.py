"""What is written of a prepared claim on the node's disk, and read again.

A CDI file says what the container runtime gives to the containers of a claim, and carries the
claim's record; metadata files say what containers may read of their devices. Start reading at
`prepared`.
"""
