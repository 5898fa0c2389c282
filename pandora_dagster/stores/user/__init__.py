"""What belongs to one user: memory, facts, notes, research and visits, sessions, levels."""
