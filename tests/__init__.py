"""Tests of Moorage: core, shell, and stories on the real Kubernetes."""
