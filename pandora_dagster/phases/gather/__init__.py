"""Phase 2: the sources of the Context Gatherer, and section 2."""
