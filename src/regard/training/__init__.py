"""Training: the loop, which knows no task, and what it needs: optimizer, schedule, checkpoints, journal."""
