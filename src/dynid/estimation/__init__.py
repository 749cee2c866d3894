"""From samples to numbers: estimators are frozen strategies with one method, ``solve(equations) -> Estimate``."""
