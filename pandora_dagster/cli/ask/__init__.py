"""Commands for turns: ask, search, batch, interventions."""
