"""Commands of the archive: archive, restore, prune, digests."""
