"""Fields of our own kinds that are read, as the API writes them, see `kube.shapes`.

`instances` has the fields of an Instance, `configurations` the fields of a Configuration that other
components read. `models` defines what may be written; it imports pydantic.
"""
