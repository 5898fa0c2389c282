"""How one recipe runs: the only caller of a model (specification 000, section 15)."""
