"""What every phase shares: its context, its dependencies, its report, halts, size limits."""
