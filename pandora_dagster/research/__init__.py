"""The research loop: queries, choice of pages, visits, claims with verbatim quotes, and how a run ends."""
