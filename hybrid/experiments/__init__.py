"""Measurements with a question: tune, breakeven, graph500."""
