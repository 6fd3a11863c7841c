"""Jobs of the service: the computing thread, the journal, limits of memory and disk."""
