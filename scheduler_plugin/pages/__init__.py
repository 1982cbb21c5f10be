"""Pages of the plugin over HTTP for people, programs and probes: they decide and change nothing.

Requests come in (`http_app`). Answers come from the other rooms, as documented models or as figures
(`prometheus`). The pages have a port of their own, so that their readers cannot bind pods.
"""
