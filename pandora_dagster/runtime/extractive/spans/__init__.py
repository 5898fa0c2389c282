"""Verbatim spans: found, ranked, quoted, shortened."""
