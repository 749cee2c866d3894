"""The two models: rich friction and how it is chosen, plain friction, and what both say of each joint."""
