"""Archiving old turns: which are due, their compression and verification, cold storage, levels above L1, retention and restore."""
