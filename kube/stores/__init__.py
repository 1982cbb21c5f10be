"""A local copy of what the API server holds, kept by list and watch.

In come objects (`apiserver_watch`); out come changes (`changes`) for consumers, from contents that
know no clock and no socket (`contents`). Start reading at `apiserver_store`.
"""
