"""Passages of the documents of a call: read, ranked, quoted."""
