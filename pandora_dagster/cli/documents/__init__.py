"""Commands about documents: memory, sources, import and export, compression, lineage."""
