"""The properties that handlers get, from the Secrets and ConfigMaps that Configurations name.

`discovery_properties` says which objects these are and resolves their values;
`apiserver_properties` reads them.
"""
