"""The house: every adapter, built once from settings. Knows constructors; knows nothing of what a turn does."""
