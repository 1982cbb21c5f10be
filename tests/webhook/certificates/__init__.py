"""Tests of the webhook: its rules, and what it makes of whatever comes in."""
