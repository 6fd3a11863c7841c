"""The worker: a process of its own that iterates on the dense core with MindSpore, reached through files only.

``__main__`` reads the flags and prepares the process, ``device`` chooses where to compute, ``program`` computes,
``worker`` serves round after round. Nothing outside this package imports MindSpore.
"""
