"""The load on line: the result is that of all samples at once."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.payload.online_load import OnlineLoad
from dynid.payload.sensing import Sensing
from dynid.payload.wrench_equations import WrenchData, wrench_data
from payload.test_wrist import BIAS, LINK, ROBOT, TRUTH, run_of

STD = np.repeat([0.1, 0.005], 3)


def equations(samples: int = 600) -> WrenchData:
    run = run_of(noise=0.1, bias=BIAS, rate=samples / 6.0)
    return wrench_data(ROBOT, run, LINK, Sensing())


@pytest.mark.parametrize("bias", [True, False])
def test_equals_the_batch_result(bias: bool) -> None:
    data = equations()
    wrench = data.wrench - (0.0 if bias else BIAS)
    online = OnlineLoad(frame=LINK, noise_std=STD, bias=bias)
    online.update(data.matrix, wrench)
    W = np.concatenate([data.matrix, np.broadcast_to(np.eye(6, 6 * bias), (len(wrench), 6, 6 * bias))], axis=2)
    rows = (W / STD[:, None]).reshape(-1, W.shape[2])
    batch = np.linalg.lstsq(rows, (wrench / STD).ravel())[0]
    found = online.estimate()
    np.testing.assert_allclose(found.vector, batch[:10], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.bias[: 6 * bias], batch[10:], rtol=1e-8, atol=1e-9)
    assert np.all(np.abs(found.vector - TRUTH.vector) < 5 * found.stderr)
    np.testing.assert_allclose(found.residual_std, STD, rtol=0.1)


def test_forgetting_follows_a_load_that_is_put_down() -> None:
    data = equations(800)
    lighter = data.wrench - 0.5 * (data.matrix @ TRUTH.vector) * (np.arange(800) >= 400)[:, None]
    keeping, forgetting = (OnlineLoad(frame=LINK, noise_std=STD, forgetting=f) for f in (1.0, 0.97))
    keeping.update(data.matrix, lighter)
    forgetting.update(data.matrix, lighter)
    found = forgetting.estimate()
    assert found.mass == pytest.approx(0.9, abs=0.05)
    np.testing.assert_allclose(found.residual_std, STD, rtol=0.3)  # what is forgotten is no sample any more
    assert keeping.estimate().mass > 1.0


def test_nothing_is_known_before_the_samples_show_it() -> None:
    online, data = OnlineLoad(frame=LINK), equations()
    for count in (0, 1):
        assert np.isinf(online.estimate().stderr).all()
        assert np.isinf(online.estimate().bias_stderr).all()
        online.update(data.matrix[count], data.wrench[count])
    with pytest.raises(ArgumentError, match="forgetting"):
        OnlineLoad(frame=LINK, forgetting=0.0)
