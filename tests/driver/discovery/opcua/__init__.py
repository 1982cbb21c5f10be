"""Tests of the room `driver/discovery/opcua/`."""
