"""How a pool is written: which ResourceSlices to delete, update and create.

In come the devices to show and the slices that are stored; out comes a plan of few writes in an
order in which no reader sees half a pool. `shards` places devices in slices, `pools` plans and
makes the bodies, `resource_slices` are slices as values, `adoption` judges what the server made of
them. Start reading at `pools`.
"""
