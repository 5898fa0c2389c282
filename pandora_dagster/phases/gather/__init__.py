"""Phase 2: which sources are looked at, what is loaded, section 2."""
