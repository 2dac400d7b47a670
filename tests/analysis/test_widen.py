"""A widened System gives what it gives of each vector alone."""

from __future__ import annotations

import numpy as np
import pytest

from dsfc.analysis.widen import BASIS, widened
from dsfc.system.evaluate import evaluate


@pytest.mark.parametrize("name", ["gla", "softmax", "s6", "mlstm", "dlr"])
def test_many_inputs_at_once_are_those_one_by_one(at, name: str) -> None:
    mixer = at(name, tokens=4)
    many = np.random.default_rng(0).standard_normal((4, 16, 3))
    sizes = {**mixer.point.sizes, BASIS.name: 3}
    wide = evaluate(widened(mixer.system, ("u",)), {"u": many}, mixer.point.params, sizes)
    for k in range(3):
        alone = evaluate(mixer.system, {"u": many[..., k]}, mixer.point.params, sizes)
        np.testing.assert_allclose(wide.outputs["y"][..., k], alone.outputs["y"], atol=1e-14)


def test_what_reads_no_wide_name_stays_narrow(at) -> None:
    s6 = at("s6", tokens=2)
    wide = widened(s6.system, ("S",))
    assert wide.inputs == s6.system.inputs
    assert [BASIS in b.axes for b in wide.blocks] == [True]
    assert BASIS in wide.outputs[0].axes and all(BASIS not in s.axes for s in wide.streams)
