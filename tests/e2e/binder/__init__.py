"""Stories of the binder on a real API server, with the policies in force."""
