"""Credentials and traces of a user in text: found, and replaced."""
