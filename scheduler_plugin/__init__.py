"""The scheduler plugin: charges every claim once, to the right queue. Planned; nothing runs yet."""
