"""The door into scheduler_plugin/judging: what other components may use of it."""

from scheduler_plugin.judging.equivalence_classes import equivalence_class, placement_class
