"""Which latency and rate a device needs to pay."""
