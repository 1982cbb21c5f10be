"""Benchmarks: each prints a ratio against a peer or a baseline of the same run."""
