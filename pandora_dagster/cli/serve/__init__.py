"""Commands that run until Ctrl-C: model servers, the chat API, archive pages, Dagster."""
