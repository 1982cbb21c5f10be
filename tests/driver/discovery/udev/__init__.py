"""Tests of the room `driver/discovery/udev/`."""
