"""The worker: a process of its own that iterates on the dense core with MindSpore, reached through files only.

``__main__`` reads the flags and prepares the process, ``device`` chooses where to compute, ``program`` closes values on
a core with the ``programs``, ``index`` finds all distances in it, ``worker`` serves round after round. Nothing outside
this package imports MindSpore.
"""
