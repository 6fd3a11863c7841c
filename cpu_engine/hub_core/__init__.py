"""The dense core: the arrays of the first k vertices."""
