"""A process of ours: it works until a signal (`processes`), or is stuck (`stuck_processes`).

Its settings come from the command line, the environment and a file (`command_settings`), its traces
go to whoever collects them (`opentelemetry`).
"""
