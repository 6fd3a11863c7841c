"""Tests of the service, without a server."""
