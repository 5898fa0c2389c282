"""Prompts as governed things: versions put into production, tested, replayed, scored, compared, and what their failures teach."""
