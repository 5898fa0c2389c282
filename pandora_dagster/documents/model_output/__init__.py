"""The text of a model's answer: JSON, tagged blocks, schemas in words."""
