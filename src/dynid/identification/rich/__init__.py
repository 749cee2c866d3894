"""Rich friction (its mechanisms and their selection), the rich and the plain model, and the friction of each joint."""
