"""Shapes: typed structs of Kubernetes objects, with only the fields that Moorage reads.

    JSON ──read_as(shape)──► the fields that a shape names ──a component's projection──► its view

`reading` reads an object as a shape. Other fields are ignored. Each kind has a module: `pods`,
`claims`, `slices`, `nodes`, `events` and others; `metadata` and `selection` have the common parts.
`times` parses RFC 3339 and Go's durations, `names` checks DNS names. Moorage's own kinds are beside
their models, in `driver.shapes` and `scheduler_plugin.shapes`.
"""
