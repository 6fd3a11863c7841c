"""Which core, which mode, and whether a device pays: statistics, models, calibration."""
