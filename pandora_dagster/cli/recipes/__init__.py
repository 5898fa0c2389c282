"""Commands about recipes: versions, tests, scores."""
