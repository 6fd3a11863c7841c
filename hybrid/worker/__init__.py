"""The core solvers: the worker behind the exchange directory, simulated devices, the index, and their guard."""
