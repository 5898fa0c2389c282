"""Strings: tokens, sections, _meta blocks, citations. A function here takes a string and gives a string or a value."""
