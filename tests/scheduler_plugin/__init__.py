"""Tests of the scheduler plugin."""
