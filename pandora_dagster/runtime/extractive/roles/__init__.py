"""What the embedded runtime answers, a module a role."""
