"""Import and export of conversations, and batches of queries."""
