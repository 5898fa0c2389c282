"""The parts of a page: regions, posts, zones, and the type that they make."""
