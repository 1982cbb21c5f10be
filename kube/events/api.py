"""The door into kube/events: what other components may use of it."""

from kube.events.apiserver_events import EventRecorder
from kube.events.event_series import Event, EventType, ObjectReference
