"""Search and replacement of credentials and of a user's traces in text."""
