"""Fields of our own kinds that are read, as the API writes them, see `kube.shapes`.

`instances` has those of an Instance, `configurations` what others than the driver read of a
Configuration. What may be written is said by `models`, which pays for pydantic.
"""
