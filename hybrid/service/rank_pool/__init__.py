"""Resident ranks that compute jobs for the service."""
