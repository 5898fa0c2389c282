"""The research loop: a question to claims with verbatim quotes of pages. Code bounds and verifies; recipes decide."""
