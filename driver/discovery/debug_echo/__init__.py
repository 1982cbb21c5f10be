"""The debugEcho handler: devices that exist only by name, for tests and first steps.

`handler` reads the names, and reports a device for each unless a file says OFFLINE.
"""
