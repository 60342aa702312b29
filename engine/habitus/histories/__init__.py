"""histories."""
