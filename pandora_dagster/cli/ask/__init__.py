"""Commands that ask: turns, batches, search, interventions."""
