"""What the API's objects say, read once with their types checked; the plugin's words.

In come objects as the API server has them, read as the shapes of `kube.shapes`; out come views with
only what decides about charges (`projections`), Queues (`queue_objects`), what nodes have and pods
ask of them (`nodes`, `pod_needs`), and what a device's name stands for (room `devices`). `names`
has the plugin's names in the outside world, `tables` keeps dicts free of what is empty. Start
reading at `claims` and `pods`.
"""
