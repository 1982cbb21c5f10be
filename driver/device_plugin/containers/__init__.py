"""What a container gets of its devices: device nodes, environment, links that follow the device.

The input is an Instance whose slot was taken. The output is the answer to the kubelet
(`responses`), and CDI files and links on the node's disk (`instance_cdi`, `disk_cdi`,
`disk_links`), which are kept up to date while the device is given away. `given_events` decides
which pods get an Event about a change. Start reading at `responses`.
"""
