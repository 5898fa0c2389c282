"""How one recipe runs: the only caller of a model (000 section 15)."""
