"""What is read off a module: names, shapes, values, the calls of its operators."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch

from dsfc.validate.surface import Surface, SurfaceError, surface

Imported = Callable[[str], ModuleType]
Text = Callable[[str], str]

GATED = """\
mixer gated "three inputs, one of them between 0 and 1, and an earlier token" {
  dims d, k = 2
  input u : d
        f : d
        s : d × k
  state h : d
  h = exp(log(f)) * h[i-1] + sum[k](s) * u
  y = h + u[i-1]
}
"""


@pytest.fixture
def gated(tmp_path, imported: Imported) -> Surface:
    import dsfc

    path = tmp_path / "gated.dsf"
    path.write_text(GATED, encoding="utf-8")
    return surface(imported(dsfc.load(path).module().text))


def test_sizes_and_shapes(text: Text, imported: Imported) -> None:
    found = surface(imported(text("normalized_attn")))
    assert found.mixer == "normalized_attn"
    assert found.cls.__name__ == "NormalizedAttn"
    assert found.sizes == {"d": 6, "h": 2, "n": 4, "p": 3}
    assert found.inputs == {"u": (6,)}
    assert found.states == ("S",)
    assert found.arguments == ("u", "W_Q", "W_K", "W_V", "w_eta", "b_eta", "S")
    assert surface(imported(text("normalized_attn")), {"d": 8}).inputs == {"u": (8,)}


def test_several_inputs(gated: Surface) -> None:
    assert gated.inputs == {"u": (6,), "f": (6,), "s": (6, 2)}
    assert "h" in gated.states and len(gated.states) == 2
    drawn = gated.draw(5, batch=3)
    assert [tuple(x.shape) for x in drawn.values()] == [(3, 5, 6), (3, 5, 6), (3, 5, 6, 2)]


def test_inputs_come_from_where_the_mixer_is_defined(gated: Surface) -> None:
    assert gated.unit
    assert all(((0 < x) & (x < 1)).all() for x in gated.draw(50).values())


def test_constrained_parameters_are_taken_by_value(text: Text, imported: Imported) -> None:
    found = surface(imported(text("ssd")))
    sample = found.sample(5)
    assert "a" not in dict(sample.layer.named_parameters())
    values = found.values(sample)
    assert (values["a"] > 0).all()
    torch.testing.assert_close(values["a"], sample.layer.log_a.exp())
    assert values["a"].requires_grad
    assert torch.equal(values["S"], sample.state.S)


def test_equal_seeds_give_equal_layers(text: Text, imported: Imported) -> None:
    found = surface(imported(text("s6")))
    one, two, other = found.layer(seed=3), found.layer(seed=3), found.layer(seed=4)
    for a, b, c in zip(one.parameters(), two.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b) and not torch.equal(a, c)


def test_the_calls_of_operators_are_seen(text: Text, imported: Imported) -> None:
    found = surface(imported(text("s6")))
    calls = found.calls(found.sample(5))
    assert [call.op.name().partition("::")[2] for call in calls] == ["forward", "backward"]
    assert all(call.outs for call in calls)


def test_what_is_no_module_of_dsfc() -> None:
    with pytest.raises(SurfaceError, match="torch is not a module that dsfc wrote"):
        surface(torch)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"d": 8, "k": 3}, "has no axis k"),
        ({"h": 2}, "needs a size of d"),
        ({"d": 7, "h": 2}, "refuses these sizes"),
    ],
)
def test_sizes_that_do_not_fit(
    text: Text, imported: Imported, sizes: dict[str, int], message: str
) -> None:
    with pytest.raises(SurfaceError, match=message):
        surface(imported(text("normalized_attn")), sizes)


def test_inputs_that_are_declared_in_a_range_are_drawn_in_it() -> None:
    found = Surface(ModuleType("mine"), {}, {"u": (3,), "g": (3,)}, unit=frozenset({"g"}))
    drawn = found.draw(20)
    assert 0 < drawn["g"].min() and drawn["g"].max() < 1 and drawn["u"].min() < 0
