"""Dependencies of one root after the other, by a queue: for graphs whose levels are many and thin.

Encoding: ``level[v]`` is -1 iff v is not reached; the queue holds the reached vertices by ascending level.
"""

from __future__ import annotations

from numba import njit, prange


@njit(cache=True, error_model="numpy")
def depend_on(offsets, targets, root, factor, level, queue, sigma, delta, score):
    """Add ``factor`` times the root's dependencies to ``score``; returns how many vertices it reaches."""
    level[:] = -1
    level[root], sigma[root], delta[root], queue[0] = 0, 1.0, 0.0, root
    head, tail = 0, 1
    while head < tail:
        u = queue[head]
        head += 1
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if level[v] == -1:
                level[v] = level[u] + 1
                sigma[v], delta[v] = 0.0, 0.0
                queue[tail] = v
                tail += 1
            if level[v] == level[u] + 1:
                sigma[v] += sigma[u]
    for i in range(tail - 1, 0, -1):  # successors come later in the queue: their dependencies are known
        u = queue[i]
        total = 0.0
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if level[v] == level[u] + 1:
                total += (1.0 + delta[v]) / sigma[v]
        delta[u] = sigma[u] * total
        score[u] += factor * delta[u]
    return tail


@njit(cache=True, parallel=True)
def depend_each_step(offsets, targets, roots, factor, places, numbers, score, reached):
    """Add each root's dependencies, times its factor, to the scores of whoever did it.

    Invariant  score[t] is the sum over the roots that thread t took.   Races  thread t alone uses what is indexed by t.
    Work       O(n + m) per root.
    """
    threads = score.shape[0]
    for t in prange(threads):
        for i in range(t, roots.size, threads):
            level, queue, sigma, delta = places[t, 0], places[t, 1], numbers[t, 0], numbers[t, 1]
            reached[i] = depend_on(offsets, targets, roots[i], factor[i], level, queue, sigma, delta, score[t])
