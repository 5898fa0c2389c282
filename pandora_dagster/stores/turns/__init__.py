"""Turns on disk: folders, manifests, commits, revisions, the archive and cold storage."""
