"""What enters and leaves a store: imported conversations, exports, batches of queries."""
