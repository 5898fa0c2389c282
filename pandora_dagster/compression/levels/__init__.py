"""Levels above raw entries (003): narrative summaries and digests as prompts and parsers. Calls no model, stores nothing."""
