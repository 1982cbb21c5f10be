"""Tests of what is deployed: definitions, manifests, the image."""
