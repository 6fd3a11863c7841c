"""Pure numba functions on arrays: the inner loops of the CPU engine, importing numpy and numba only.

Threads that wait for the next launch, or for one another at its end, spin before they sleep: that is quick while every
thread has a processor, and keeps the very thread that is waited for from its processor when other programs run. GNU
OpenMP spins for some 20 ms unless set otherwise. Here it spins for a few launches' length; ``GOMP_SPINCOUNT`` or
``OMP_WAIT_POLICY`` in the environment say otherwise. The library reads its environment once, when it is loaded: so that
happens here, and processes started later inherit nothing.
"""

from __future__ import annotations

import os
from importlib import import_module

SPINS = 30_000  # looks, some 1.8 ms: 1,000 slow a quiet search of scale 20 by a fifth; 100,000 delay busy machines


def _load_openmp() -> None:
    if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
        return
    os.environ["GOMP_SPINCOUNT"] = str(SPINS)
    try:
        import_module("numba.np.ufunc.omppool")  # numba's layer of threads, which brings the library
    except ImportError:  # numba has another one here
        pass
    finally:
        del os.environ["GOMP_SPINCOUNT"]


_load_openmp()
