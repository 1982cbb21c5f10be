"""Events: what people are told, each kind once and its repetitions as a series (`event_series`).

They are told in the background, as far as that is possible (`apiserver_events`).
"""
