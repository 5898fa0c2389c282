"""Facts of a text: statements, answers, counts, credentials, and the ledger of what must survive."""
