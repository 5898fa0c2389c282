"""The formats of context.md and its neighbours: sections, `_meta` blocks, citations, messages, entries, units. Opens no file."""
