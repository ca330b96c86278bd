"""Looking at a run: its report, and what its heads look at."""
