"""The elements of a page: its tree, what of it is seen, and its text in blocks."""
