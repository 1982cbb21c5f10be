"""The webhook: guards what the binder wrote. Planned; nothing runs yet."""
