"""The debugEcho handler: devices that exist in words only, for trying things out.

`handler` reads the words, and shows a device for each while a file does not say OFFLINE.
"""
