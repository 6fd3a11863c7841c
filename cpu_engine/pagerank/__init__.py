"""PageRank: plain, personalised, weighted, on a part, and the checks."""
