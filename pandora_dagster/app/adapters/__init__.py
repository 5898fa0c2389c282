"""The construction of adapters: with `composition`, the only place that knows the stores. A module is imported with its first use."""
