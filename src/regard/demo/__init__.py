"""The demonstration: a corpus written by a grammar of our own, so that nothing has to be downloaded."""
