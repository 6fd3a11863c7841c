"""Compiled loops of the asynchronous engine and of the certificate."""
