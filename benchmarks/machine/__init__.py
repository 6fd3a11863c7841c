"""What the machine can do: bandwidth, memory, threads, other load."""
