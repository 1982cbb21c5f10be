"""Stories about the webhook, on a real API server."""
