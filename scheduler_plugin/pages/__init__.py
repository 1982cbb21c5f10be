"""What people, programs and probes read of the plugin over HTTP: it decides and changes nothing.

In come requests (`http_app`); out goes what the other rooms know, as a model that says
what its fields mean, or as figures (`prometheus`). The pages have a port of their own, so that who
may read them cannot bind pods.
"""
