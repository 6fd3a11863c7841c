"""Compiled loops that pack updates into messages and unpack them."""
