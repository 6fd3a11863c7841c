"""One module per command: ``add_arguments(parser)`` and ``execute(options) -> exit code``."""
