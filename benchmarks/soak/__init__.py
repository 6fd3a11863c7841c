"""``bench soak``: the service under everything at once."""
