"""Run folders: everything that is needed to use, inspect, resume or explain a model."""

from regard.runs.folder import Stored, open_run, read_notes, read_weights, save_run, write_weights

__all__ = ["Stored", "open_run", "read_notes", "read_weights", "save_run", "write_weights"]
