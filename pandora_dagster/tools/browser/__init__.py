"""Pages that need a browser: headless Chromium, which reaches the web through the guarded proxy alone."""
