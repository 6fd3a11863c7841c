"""The file protocol: names, messages and the two state machines."""
