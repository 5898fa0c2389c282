"""Parsers and renderers of text: tokens, sections, `_meta` blocks, citations. Functions take and return strings or values."""
