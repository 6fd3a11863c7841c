"""Algorithm drivers: each walks one graph in small steps, so that a caller can look, merge and go on between them."""
