"""Whether a compressed text still says what its source said."""
