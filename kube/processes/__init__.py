"""A process of Moorage: it runs until a signal (`processes`), or until it is stuck.

`stuck_processes` ends a process whose event loop is stuck. Settings come from the command line and
the environment (`command_settings`, of commands that `built_commands` builds) and from a file
(`file_settings`). Traces go to an OTLP collector (`opentelemetry`).
"""
