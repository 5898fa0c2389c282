"""What a turn does, phase by phase, in the documents' own words. The only package beside `archive` that names recipes."""
