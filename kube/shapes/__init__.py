"""Objects of Kubernetes as the API server writes them, read once with their types checked.

    JSON ──read_as(shape)──► the fields that a shape names ──a component's projection──► its view

`reading` reads a shape. A shape names what is read of a kind, and nothing else is looked at:
`pods`, `claims`, `slices`, `nodes`, `events` and others, with what all have in `metadata` and
`selection`. `times` has RFC 3339 and Go's durations, `names` the DNS names of objects. Moorage's
own kinds stand beside their models, in `driver.shapes` and `scheduler_plugin.shapes`.
"""
