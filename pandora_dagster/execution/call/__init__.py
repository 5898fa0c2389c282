"""One recipe call: inputs, pack, attempts, gates, record."""
