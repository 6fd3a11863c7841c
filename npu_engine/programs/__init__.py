"""MindSpore programs over a semiring, for one vector and for a batch of them (matrix-matrix).

``table`` names them. ``exact`` says what keeps them exact, ``cores`` puts a core on the device whole, ``compaction`` in
pieces, ``levels`` closes unit weights, ``relaxation`` closes weights and labels, ``steps`` does single products,
``loops`` keeps what is compiled.
"""
