"""Command lines, as a door of their own beside `api`: they need no HTTP and no TLS.

A short command, such as `kubectl moorage`, reads its flags before it knows whether it needs a
cluster.
"""

from kube.processes.built_commands import command_of as command_of
from kube.processes.command_settings import commands as commands
from kube.processes.command_settings import parsed as parsed
from kube.processes.command_settings import refuse as refuse
from kube.processes.command_settings import settings_of as settings_of
