"""Tests of the room `driver/discovery/onvif/`."""
