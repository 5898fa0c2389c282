"""What to load: ordering and choosing whole items, without a model."""
