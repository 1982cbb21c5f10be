"""Discovery handlers: each turns discovery details into the current list of devices."""
