"""Stories of the driver on the real cluster: real devices, real kubelets."""
