"""The tuning sweep: cores, devices, engines and modes against the CPU alone."""
