"""Files: atomic writes, locks, the layout of a store, DuckDB files."""
