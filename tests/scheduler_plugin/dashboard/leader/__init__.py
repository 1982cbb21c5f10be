"""What the elected plugin tells the dashboard, and by which certificates they know each other."""
