"""Frozen models, enums, limits, and the ports that adapters implement. No behaviour beyond validation."""
