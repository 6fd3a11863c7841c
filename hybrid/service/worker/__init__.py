"""Resident workers of the service."""
