"""The kubelet's contracts: stubs that `make proto` generates from proto/."""
