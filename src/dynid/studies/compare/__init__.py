"""All estimators held against each other on simulated loops of known truth."""
