"""What the Coordinator may call. Each tool works for one user and sees nothing of another."""
