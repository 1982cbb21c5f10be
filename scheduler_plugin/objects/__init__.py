"""Views of API objects, read once with their types checked.

Input is objects of the API server, as the shapes of `kube.shapes`; output is views with the parts
that decide about charges (`claims`, `pods`), Queues (`queue_objects`), the resources of nodes and
the requests of pods (`nodes`, `pod_needs`), and the meaning of device names (room `devices`).
`claim_objects` and `pod_objects` read the views, `projections` says what the stores keep of an
object. `names` has the plugin's names in the API. Start reading at `claims` and `pods`.
"""
