"""Web pages of the archive and of lineage."""
