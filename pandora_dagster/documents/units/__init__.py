"""Texts of all kinds as units that are kept whole or left out, never cut."""
