"""Stores: local copies of objects of the API server, kept up to date by list and watch.

`apiserver_watch` lists and watches, `contents` turns objects into changes without clock and
sockets, and `changes` are what subscribers get. Start reading at `apiserver_store`.
"""
