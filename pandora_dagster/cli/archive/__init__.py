"""Commands for the archive: archive, restore, prune, digest."""
