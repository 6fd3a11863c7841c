"""Tests of cpu_engine."""
