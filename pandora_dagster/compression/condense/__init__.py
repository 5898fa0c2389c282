"""How a text becomes shorter, by content type."""
