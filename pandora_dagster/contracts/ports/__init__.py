"""The ports, by topic: what the pipeline needs of models, storage, tools and the clock."""
