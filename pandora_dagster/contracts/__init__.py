"""The nouns: frozen models, enums, limits and the ports that adapters fill. No behaviour beyond checking themselves."""
