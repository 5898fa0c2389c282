"""HTTP servers: an OpenAI-compatible chat API (`pandora api`) and the pages of the archive (`pandora pages`)."""
