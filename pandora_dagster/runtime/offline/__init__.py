"""SGLang in a process of its own, without a server: for machines that work at night only."""
