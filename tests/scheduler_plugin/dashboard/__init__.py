"""The dashboard: its rows, who sees them, and the page in a browser."""
