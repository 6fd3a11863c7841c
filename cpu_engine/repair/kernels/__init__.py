"""Compiled loops of the textbook algorithms; they share no code with the engines."""
