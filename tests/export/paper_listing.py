"""The generated C of Izaguirre et al. 1992, Appendix A, in Python: inertias and gravity of the PUMA 260 without load.

Three lines of the print have unbalanced parentheses, mended here. D11, D12 and D13 are wrong as printed, because link 3
drops the products JS413 and JS423; ``repaired=True`` puts them back.
"""

from __future__ import annotations

from math import cos, sin

import numpy as np

M6, Z6, Y4, AD4, CD4 = 2.768114, 0.014041, -0.38219, 0.079781, 0.077761  # the print rounds Z6 to 0.01401
IA = (0.091631, 0.136312, 0.030843, 0.001781, 0.006759, 0.001262)
A2, D3, D4, GRAV = 0.2032, 0.12624, 0.2032, 9.81


def listing(q: np.ndarray, *, repaired: bool) -> tuple[np.ndarray, np.ndarray]:
    """D_ij (6, 6) and D_i (6,) at joint angles q (6,)."""
    S2, C2, S3, C3, S4, C4, S5, C5 = (f(q[j]) for j in (1, 2, 3, 4) for f in (sin, cos))
    C23, S23 = cos(q[1] + q[2]), sin(q[1] + q[2])
    T1214, T1224, T1411, T1421 = C2 * A2, S2 * A2, C23 * C4, S23 * C4
    T1414, T1424 = -S23 * D4 + T1214, C23 * D4 + T1224
    BS51, BS52 = -S5 * Z6, C5 * Z6
    BA52 = Y4 + BS52 + D4 * M6
    BS41, BS42, BS43 = C4 * BS51, S4 * BS51, BA52
    BA42 = BS42 - D3 * M6
    BS32, BS31, BS33 = S3 * BS41 + C3 * BS43, C3 * BS41 - S3 * BS43, -BA42
    BA31 = BS31 + A2 * M6
    BS22, BS23, BS21 = S2 * BA31 + C2 * BS32, BS33, C2 * BA31 - S2 * BS32
    JA533, JA511 = CD4 - M6 * D4 * D4, AD4 - M6 * D4 * D4
    JS423, JS413 = -D4 * BS42, -D4 * BS41
    JS422 = S4 * S4 * JA511 + C4 * C4 * JA533 + 2.0 * D4 * BS43
    JS412 = S4 * C4 * (JA511 - JA533)
    JS411 = C4 * C4 * JA511 + S4 * S4 * JA533 + 2.0 * D4 * BS43
    JA433, JA411 = -M6 * D3 * D3, JS411 - M6 * D3 * D3
    JS333 = JS422
    JS323, JS313 = -S3 * JS412 - D3 * BS32, -C3 * JS412 - D3 * BS31
    JS322 = S3 * S3 * JA411 + C3 * C3 * JA433 + 2.0 * D3 * BS33
    JS312 = S3 * C3 * (JA411 - JA433)
    JS311 = C3 * C3 * JA411 + S3 * S3 * JA433 + 2.0 * D3 * BS33
    if repaired:
        JS313, JS323 = JS313 + S3 * JS423, JS323 - C3 * JS423
        JS311, JS322 = JS311 - 2 * S3 * C3 * JS413, JS322 + 2 * S3 * C3 * JS413
        JS312 += (C3 * C3 - S3 * S3) * JS413
    JA333, JA322 = JS333 - M6 * A2 * A2, JS322 - M6 * A2 * A2
    JS233 = JA333 + 2.0 * (T1224 * BS22 + T1214 * BS21)
    JS223 = S2 * JS313 + C2 * JS323 - T1224 * BS23
    JS222 = S2 * S2 * JS311 + 2 * S2 * C2 * JS312 + C2 * C2 * JA322 + 2.0 * T1214 * BS21
    PS031, PS041, PS042 = C23 * D3, T1411 * D3 + S4 * T1414, -S23 * D3
    PS131, PS141 = -C23 * T1224 + S23 * T1214, -T1411 * T1424 + T1421 * T1414
    PS142, PS241 = S23 * T1424 + C23 * T1414, -C4 * D4
    D = np.diag(IA)
    D[0] += [JS222, JS223, S2 * JS313 + C2 * JS323, S23 * JS413 - BS42 * PS031 + BS41 * T1214, 0, 0]
    D[0, 4] = -BS52 * PS041 + BS51 * PS042
    D[1] += [0, JS233, JS422 + BS31 * A2, -JS423 - BS42 * PS131, -BS52 * PS141 + BS51 * PS142, 0]
    D[2] += [0, 0, JS422, -JS423, -BS52 * PS241, 0]
    G = [0, BS21, -BS32 * S2 + BS31 * C2, -BS42 * S23, -BS52 * T1421 + BS51 * C23, 0]
    return np.triu(D) + np.triu(D, 1).T, GRAV * np.array(G)
