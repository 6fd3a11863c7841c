"""What a search on many ranks would send and how long it would take, computed without running it."""
