"""Applies the desired state of a pool: which ResourceSlices to delete, update and create.

The input is the devices of the pool and the stored slices. The output is a plan with few writes, in
an order in which no reader sees half a pool. `shards` places devices in slices; `pools` plans the
writes and makes the bodies; `resource_slices` has slices as values, and `slice_writes` their
writes; `adoption` compares what was sent with what the API server stored. Start reading at `pools`.
"""
