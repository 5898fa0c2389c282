"""Governance of prompts: versions are promoted, tested, replayed, scored and compared, and their failures are grouped."""
