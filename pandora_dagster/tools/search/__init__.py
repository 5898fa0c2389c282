"""Search providers: SearXNG's JSON API, a folder of documents, a recorded file."""
