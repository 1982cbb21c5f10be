"""The door into scheduler_plugin/importing: what other components may use of it."""

from scheduler_plugin.importing.foreign import NotValidError
from scheduler_plugin.importing.translation import Translation, translated
