"""The turn index: rows, messages, postings, vectors, and how they are rebuilt."""
