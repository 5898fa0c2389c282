"""The fields of a page: what it says of its subject and of itself."""
