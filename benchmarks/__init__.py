"""Tandem measured: against its peers on the same graph in the same run, against itself, and against the machine.

``python run.py bench NAME`` is the way in; docs/how-to/benchmarks.md says how to run and how to read each one.
Results are printed, and written where asked; none is kept here.
"""
