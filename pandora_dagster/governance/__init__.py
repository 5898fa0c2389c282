"""Governance of prompts: promotes, tests, replays, scores and compares versions of recipes, and groups their failures."""
