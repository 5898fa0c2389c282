"""Parsers of a model's answer: JSON, YAML, tagged blocks; and a short notation of schemas."""
