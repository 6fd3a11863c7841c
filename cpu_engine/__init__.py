"""The CPU engine: graphs on this machine and exact traversals over them, with or without a partner."""
