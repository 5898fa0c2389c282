"""Small JSON records: batches, corrections, interventions, recipe versions."""
