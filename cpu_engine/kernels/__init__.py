"""Pure numba functions on arrays: the inner loops of the CPU engine, importing numpy and numba only."""
