"""The parts of the scheduler plugin on the real API server."""
