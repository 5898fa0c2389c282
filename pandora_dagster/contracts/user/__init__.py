"""Values that belong to one user: memory, facts, sources, conversations, summary levels."""
