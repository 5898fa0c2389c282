"""Adapters of storage: documents as files written whole, DuckDB indexes over them, the erasure of a user."""
