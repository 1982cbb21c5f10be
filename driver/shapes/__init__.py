"""The fields of Moorage's own kinds that programs read, as the API writes them; see `kube.shapes`.

`instances` has the fields of an Instance, `configurations` those of a Configuration that other
components than the driver read. `models` defines which values may be written, with pydantic.
"""
