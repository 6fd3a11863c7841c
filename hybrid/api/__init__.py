"""The Python interface behind ``import hybrid``: graphs from anything, algorithms, checked results."""
