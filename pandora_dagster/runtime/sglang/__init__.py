"""SGLang's OpenAI-compatible servers behind the `ModelRuntime` port. Importing this room loads no client library."""
