"""What to shrink, and whether it survived: facts, ledgers, verdicts, condensing. Pure: no model, no file."""
