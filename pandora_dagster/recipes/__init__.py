"""What may run: recipes and prompts from disk, checked, versioned and catalogued. Calls no model, fills no pack."""
