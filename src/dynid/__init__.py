"""dynid: identify the dynamics of robots."""
