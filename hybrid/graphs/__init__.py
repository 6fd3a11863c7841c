"""From the configuration to a graph: opening or building it, start vertices, hints."""
