"""Shortens texts and verifies what survived: units, salience, selection, facts and verdicts. Pure: no model, no file."""
