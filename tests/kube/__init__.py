"""Tests of kube: the pure heart by values, the shell over real sockets."""
