"""Tests of the discovery handlers."""
