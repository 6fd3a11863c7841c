"""An algorithm as a contributor adds one: a class in its own folder, and one line in the registry."""
