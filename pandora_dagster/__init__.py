"""Pandora on Dagster: conversation turns as documents, model calls as recipes, compression with proof."""
