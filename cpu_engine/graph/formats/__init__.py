"""Graph files: readers that recognise a format by its content, and writers.

Each format has a module of its own that owns its layout; ``read_graph``, ``sniff`` and ``write_graph`` are all that the
rest of the program uses.
"""

from cpu_engine.graph.formats.reading import FORMATS, read_graph
from cpu_engine.graph.formats.sniffing import sniff
from cpu_engine.graph.formats.writing import WRITABLE, target_format, write_graph

__all__ = ["FORMATS", "WRITABLE", "read_graph", "sniff", "target_format", "write_graph"]
