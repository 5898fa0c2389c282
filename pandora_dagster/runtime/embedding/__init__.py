"""Vectors of texts by a model on this machine."""
