"""[Atkeson1986] Tables 1 and 2 in simulation, one imperfect rig each."""

from __future__ import annotations

import numpy as np

from support.paper_loads import BAR_TENSOR, table_1, table_2


def test_table_1_mass_and_change_of_centre_of_mass() -> None:
    rows = np.array(table_1(np.random.default_rng(5)))
    mass, still, moving, shift, still_shift, moving_shift = rows.T
    assert np.abs(still - mass).max() < 0.010
    assert np.abs(still_shift - shift).max() < 1e-3
    assert np.abs(moving - mass).max() < 0.040
    assert np.abs(moving_shift - shift).max() < 2e-3


def test_table_2_special_motions_improve_the_inertia() -> None:
    all_joints, special = table_2(np.random.default_rng(5))
    truth = BAR_TENSOR[np.triu_indices(3)]
    assert np.abs(special - truth).max() < 0.0015
    assert np.linalg.norm(special - truth) < 0.3 * np.linalg.norm(all_joints - truth)
