"""For all tests: one thread for torch, whose threads wait for each other more than they work on tiny models."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
