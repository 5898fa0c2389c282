"""The guarded way out to the web: address guard, dialling, HTTP client, robots.txt, politeness, budgets."""
