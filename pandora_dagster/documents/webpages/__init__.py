"""Pages of the web to PAGE_DOC: pure functions, no network."""
