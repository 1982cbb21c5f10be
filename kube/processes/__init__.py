"""A process of ours: it works until a signal (`processes`), or is stuck (`stuck_processes`).

Its settings come from the command line and the environment (`command_settings`, of commands that
`built_commands` builds) and from a file (`file_settings`), its traces go to whoever collects them
(`opentelemetry`).
"""
