"""A job on one rank: open, plan, run, prove or repair, compare."""
