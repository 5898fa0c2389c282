"""Commands for the whole store: health, indexes, calls, erasure."""
