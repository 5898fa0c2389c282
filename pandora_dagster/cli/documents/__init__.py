"""Commands about documents: memory, sources, import, export and batch, compression, lineage."""
