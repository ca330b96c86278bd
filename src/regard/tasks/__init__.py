"""The tasks, a short file each: how it reads data, which family it builds, its loss, its metric, its decoder."""
