"""Medium-sized random graphs through every algorithm, engine, strategy and number of threads, every result checked.

Property tests use small graphs with small thresholds; this stage uses the sizes at which the shipped thresholds switch
paths. `python -m tests.stress --help` tells how to run it, `make stress` runs a minute of it.
"""
