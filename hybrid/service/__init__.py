"""The resident service: graphs stay in memory, answers go over HTTP, a page shows it (docs/how-to/service.md).

The main thread computes - every parallel kernel runs there, and nowhere else - and a second thread serves HTTP. They
meet in `compute.Compute`, whose bounded queues are the only way from one to the other.
"""
