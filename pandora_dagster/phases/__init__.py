"""What a turn does, phase by phase, in the documents' own words. The only room that names recipes."""
