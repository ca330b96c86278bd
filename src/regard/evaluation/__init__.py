"""How good a model is, and what it costs."""
