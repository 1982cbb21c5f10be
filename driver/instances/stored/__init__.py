"""Instances as the API server stores them: objects, and the values of their fields.

`objects` makes the body of an Instance and reads one back; `device_usage` reads and writes the
holder of a slot. Start reading at `objects`.
"""
