"""Tests of the room `driver/discovery/debug_echo/`."""
