"""One file per benchmark of the whole program: ``bfs.py`` is ``python run.py bench bfs``."""
