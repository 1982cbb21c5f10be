"""The contract of discovery handlers: stubs that `make proto` generates from proto/."""
