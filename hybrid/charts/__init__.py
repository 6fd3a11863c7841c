"""The kit of all pictures: markup, axes, lettering, units."""
