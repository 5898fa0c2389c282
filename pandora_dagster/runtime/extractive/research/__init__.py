"""Questions, pages and claims as the embedded runtime reads them: by words, fields and values."""
