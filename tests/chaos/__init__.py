"""What must hold, written down once outside the product, and tried on the real cluster by chance.

The checker imports nothing of the product: it reads the API, the kubelets' pod-resources, the CDI
files and the containers, and counts by itself.
"""
