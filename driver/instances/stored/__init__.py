"""Instances as the API server has them: objects, and the values in their fields.

`objects` makes a body of an Instance and reads one back, `device_usage` says who holds a slot.
Start reading at `objects`.
"""
