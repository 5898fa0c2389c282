"""The lineage index, how it is rebuilt, and the texts that its document ids name."""
