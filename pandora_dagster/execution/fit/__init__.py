"""Making documents fit a call's budget: priorities, chunks, compression by a model, its checks and its log."""
