"""The door into scheduler_plugin/objects: what other components may use of it."""

from scheduler_plugin.objects.amounts import Ceiling, ResourceKey
from scheduler_plugin.objects.bindings import (
    BinderProtocol,
    BindFailed,
    BindRequest,
    Bound,
    ClaimOwner,
    ClaimsChanged,
    Fence,
    FencedError,
    Outcome,
    check_fence,
)
from scheduler_plugin.objects.claim_objects import claim_template_view, claim_view
from scheduler_plugin.objects.claims import ClaimTemplateView, ClaimView, ClassName, DeviceId
from scheduler_plugin.objects.devices.catalog import Catalog
from scheduler_plugin.objects.devices.devices import (
    ClassView,
    InstanceView,
    class_view,
    instance_view,
)
from scheduler_plugin.objects.devices.driver_guards import unguarded, unguarded_driver
from scheduler_plugin.objects.held_texts import held_text, missed_text, read_missed
from scheduler_plugin.objects.measures import amount_text, ceiling_text
from scheduler_plugin.objects.pod_objects import namespace_view, pod_view
from scheduler_plugin.objects.pods import NamespaceView, PodClaim, PodView
from scheduler_plugin.objects.queue_objects import parse_queue
from scheduler_plugin.objects.selectors import LabelSelector, selector_of
from scheduler_plugin.objects.steps import STRIDE
