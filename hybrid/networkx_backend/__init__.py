"""Tandem as a NetworkX backend: ``networkx`` functions run here on graphs converted once (docs/how-to/networkx.md).

NetworkX finds it by the entry points ``networkx.backends`` and ``networkx.backend_info``. This file and info.py are
loaded with every ``import networkx``, so they import nothing.
"""
