"""A job on many ranks: rendezvous, parts, collectives, workers, trace."""
