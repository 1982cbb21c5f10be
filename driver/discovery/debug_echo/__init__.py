"""The debugEcho handler: devices that exist in words only, for trying things out.

`details` reads the words, `handler` shows a device for each while a file does not say OFFLINE.
"""
