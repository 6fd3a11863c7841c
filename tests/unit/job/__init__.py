"""Tests of job."""
