"""What handlers are given: the Secrets and ConfigMaps that Configurations name, and no others.

`discovery_properties` says which, and what becomes of them; `apiserver_properties` reads them.
"""
