"""Fakes of outside parties, for failure injection and scale; one per shell module."""
