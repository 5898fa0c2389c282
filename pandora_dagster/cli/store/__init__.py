"""Commands about the whole store: health, indexes, calls, erasure."""
