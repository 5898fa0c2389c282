"""Pages of the web: as they were fetched, and as they were read."""
