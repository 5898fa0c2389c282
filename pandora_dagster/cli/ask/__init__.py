"""Commands for turns: ask, search, interventions."""
