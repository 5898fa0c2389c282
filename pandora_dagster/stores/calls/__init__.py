"""Records of model calls: the log, its index, the vault of packs and answers, metrics."""
