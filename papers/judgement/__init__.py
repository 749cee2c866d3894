"""How the papers are judged: verdicts that are computed, printed formulas as data, and the pages of a reproduction."""
