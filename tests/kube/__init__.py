"""Tests of kube, on real sockets and a real API server."""
