"""Events for users: one Event of each kind, and its repetitions as a series (`event_series`).

The recorder (`apiserver_events`) writes them in the background, as best effort.
"""
