"""The zoo's robots are what their sources say."""
