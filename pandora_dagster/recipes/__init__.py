"""Recipes and prompts from disk: read, checked, versioned and listed in the registry. Calls no model."""
