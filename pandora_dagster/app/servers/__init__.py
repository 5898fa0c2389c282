"""Model servers: the runtimes over them, and the checks of their layers. The embedded runtime imports none of it."""
