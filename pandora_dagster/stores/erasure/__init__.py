"""Erasing one user: what to look for, in files, rows and records, and the proof that nothing is left."""
