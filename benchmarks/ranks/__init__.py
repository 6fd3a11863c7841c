"""``bench ranks``: algorithms on MPI ranks."""
