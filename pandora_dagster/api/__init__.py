"""The HTTP door: the pipeline behind OpenAI's chat API, for any chat client. Started by `pandora api`."""
