"""The binder: writes the owner of a claim as its queue label. Planned; nothing runs yet."""
