"""What a layer says of itself and of its arguments, and what it refuses to be made of."""

from __future__ import annotations

import inspect
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

import dsfc
from dsfc.validate.surface import surface

RICH = """
  dims d, heads h = 4, n = d / h, r = d / 16, t = 3
  input u : d; v : d
  param a : h
        b : h × n positive = 1/2
        c : h × n unit
        e : d nonneg ~ uniform(0.1, 0.2)
        z : d complex
        W : d -> h × n ~ normal(0, 0.02)
        V : d -> h × n
        P : d -> d
        Q : d -> r
        k : d × t
  buffer g : d
  state S : h × n
  x = fir[t](k, u)
  S = sigmoid(W x) * S[i-1] + b * c * (V x)
  y = e * Re(z) * v * u[i-1] + g * (P u) * sum[h](sum[n](S * a)) + sum[r](Q v)
"""
BACKWARD = """
  dims d
  input u : d
  state s : d; r : d backward
  s = sigmoid(u) * s[i-1] + u
  r = sigmoid(u) * r[i+1] + u
  y = s + r
"""
SIZE_OF_NOTHING = "dims d, k = 3\n input u : d\n y = u * sum[k](iota[k] + 1)"


@pytest.fixture
def module(build):
    return build("rich", RICH).module


def doc(value: object) -> str:
    return inspect.getdoc(value) or ""


def test_a_layer_lists_its_sizes_and_what_it_stores(module) -> None:
    assert doc(module.Rich) == """\
rich. As a layer.

Args:
    d: size of the axis; required.
    h: size of the axis; 4 if not given.
    n: size of the axis; d / h if not given.
    r: size of the axis; d / 16 if not given.
    t: size of the axis; 3 if not given.
    device, dtype: of the parameters.

Attributes:
    a: `[h]`.
    log_b: `[h, n]`: b, stored as its log.
    logit_c: `[h, n]`: c, stored as its logit.
    root_e: `[d]`: e, stored as its root.
    parts_z: `[d, 2]`: z, stored as its real and imaginary parts.
    W, V: `[h, n, d]`.
    P: `[d, d]`.
    Q: `[r, d]`.
    k: `[d, t]`.
    g: `[d]`, fixed.
    float32_parameters: names of what feeds a decay, an exponent or a phase, and stays in
        float32 when the layer is cast to a narrower dtype.
    no_weight_decay: names of those and of parameters that are stored as a log, logit or root:
        weight decay is not to draw them to 0.
    head_axes: names of what heads lie along, and on which axis: where tensor parallelism cuts.

Raises:
    ValueError: sizes that do not fit one another.
"""[:-1]  # fmt: skip


def test_the_functional_form_lists_every_tensor(module) -> None:
    assert doc(module.rich) == """\
Returns y `[B, L, d]` and each state tensor after the last token.

Args:
    u: `[B, L, d]`.
    v: `[B, L, d]`.
    a: `[h]`.
    b, c: `[h, n]`.
    e, z, g: `[d]`.
    W, V: `[h, n, d]`.
    P: `[d, d]`.
    Q: `[r, d]`.
    k: `[d, t]`.
    S: `[B, h, n]` before the first token.
    u_past: `[B, K, d]`, the last K values of u before the first token.
    mode, chunk: as in `Rich.forward`.
    lengths: `[B]`, tokens of each row that count, from its start; all if not given. States are
        those after them, and outputs of the others mean nothing.

Raises:
    ValueError: no such mode.
"""[:-1]  # fmt: skip
    names = inspect.signature(module.rich).parameters
    assert list(names) == "u v a b c e z W V P Q k g S u_past mode chunk lengths".split()
    assert inspect.signature(module.rich).return_annotation == "tuple[Tensor, Tensor, Tensor]"


def test_a_state_lists_its_tensors(module) -> None:
    assert doc(module.State) == """\
What the past leaves behind.

Attributes:
    layout: of each tensor the names of its axes, the rule of its dtype (that of inputs,
        `accumulator`: float32 at least, `complex`: complex64 at least), and whether it is whole
        or grows with the past: has all tokens, or says where one is seen.
    S: `[B, h, n]`.
    u_past: `[B, K, d]`, the last K values of u.
"""[:-1]  # fmt: skip


def test_a_call_says_its_shapes(module) -> None:
    said = doc(module.Rich.forward)
    assert "u: `[B, L, d]`." in said and "y, `[B, L, d]`, and the state if asked for." in said
    assert "mode: `auto`, `recurrent`, `chunked`, `scan`, `parallel` or `exact`; see `ex" in said
    said = doc(module.Rich.step)
    assert said.startswith("Mixes one token, at constant cost.")
    assert "u: `[B, d]`." in said and "y, `[B, d]`, and the state after the token." in said


def test_sizes_are_derived_or_refused(module) -> None:
    layer = module.Rich(d=32)
    assert repr(layer) == "Rich(d=32, h=4, n=8, r=2, t=3)"
    assert repr(module.Rich(d=30, n=5, r=1, t=2)) == "Rich(d=30, h=4, n=5, r=1, t=2)"
    with pytest.raises(ValueError, match=r"n = d / h = 30 / 4 is not whole; give n"):
        module.Rich(d=30, r=1)
    with pytest.raises(ValueError, match=r"r = d / 16 = 24 / 16 is not whole; give r"):
        module.Rich(d=24)
    with pytest.raises(TypeError, match="required keyword-only argument: 'd'"):
        module.Rich()


def test_the_state_has_the_shapes_that_a_call_takes(module) -> None:
    layer = module.Rich(d=32)
    state = layer.initial_state(3)
    assert (state.S.shape, state.u_past.shape) == ((3, 4, 8), (3, 2, 32))
    # One tap needs no past, the read of u[i-1] does.
    assert module.Rich(d=32, t=1).initial_state(1).u_past.shape == (1, 1, 32)
    u = torch.randn(3, 5, 32)
    y, after = layer(u, u, return_state=True)
    assert y.shape == u.shape and after.S.shape == state.S.shape
    for wrong in (torch.zeros(3, 4, 7), torch.zeros(2, 4, 8), torch.zeros(3, 4, 8, device="meta")):
        with pytest.raises(ValueError, match=r"state.S must be \[3, 4, 8\] on cpu, got"):
            layer(u, u, module.State(S=wrong, u_past=state.u_past))
    with pytest.raises(ValueError, match=r"state.u_past must be \[3, 2, 32\] on cpu, got \[3, 1"):
        layer(u, u, module.State(S=state.S, u_past=state.u_past[:, 1:]))


def test_inputs_are_held_against_their_shapes_and_each_other(module) -> None:
    layer, u = module.Rich(d=32), torch.randn(2, 5, 32)
    with pytest.raises(ValueError, match=r"v must be \[B, L, d\] = \[B, L, 32\], got \[2, 5, 31\]"):
        layer(u, u[..., 1:])
    with pytest.raises(ValueError, match=r"u must be \[B, L, d\] = \[B, L, 32\], got \[2, 32\]"):
        layer(u[:, 0], u)
    for other in (u[:, 1:], u[1:]):
        with pytest.raises(ValueError, match="v and u differ in B or L"):
            layer(u, other)
    with pytest.raises(TypeError, match=r"v is torch.float64, want torch.float32"):
        layer(u, u.double())
    with pytest.raises(ValueError, match="v is on meta, want cpu"):
        layer(u, u.to("meta"))


def test_what_runs_backwards_has_no_step(build) -> None:
    module = build("both_ways", BACKWARD).module
    layer, u = module.BothWays(d=4), torch.randn(1, 3, 4)
    assert "ValueError: a wrong shape, device, mode, chunk or pack, or a state (E-STEP)." in doc(
        module.BothWays.forward
    )
    assert doc(module.BothWays.step).startswith("Refuses: an output needs all tokens to come.")
    assert doc(module.both_ways).startswith(
        "Returns y `[B, L, d]` and each state tensor after the last token, r before the first one."
    )
    with pytest.raises(ValueError, match=r"E-STEP: .*r runs"):
        layer.step(u[:, 0], None)
    with pytest.raises(ValueError, match="E-STEP"):
        layer(u, layer.initial_state(1))


class Calls(TorchFunctionMode):
    """Counts calls of torch by name."""

    def __init__(self) -> None:
        super().__init__()
        self.of: Counter[str] = Counter()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.of[func.__name__] += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["retnet", "ssd", "gla", "normalized_attn"])
def test_a_step_casts_nothing_and_takes_no_sequence_apart(build, name: str) -> None:
    """Of one token each call of torch costs as much as its arithmetic."""
    found = surface(build(name, None).module)
    layer = found.cls(**found.sizes)
    (u,) = found.draw(1, dtype=torch.float32).values()
    with torch.no_grad(), Calls() as calls:
        layer.step(u[:, 0], layer.initial_state(len(u)))
    assert calls.of["addcmul"] == 1
    assert not {"to", "unbind", "stack"} & set(calls.of)


def test_a_size_that_no_tensor_has_is_an_argument(build) -> None:
    module = build("size_of_nothing", SIZE_OF_NOTHING).module
    assert "k: size of an axis that no tensor has." in doc(module.size_of_nothing)
    u = torch.randn(2, 3, 4)
    torch.testing.assert_close(module.SizeOfNothing(d=4, k=5)(u), 15 * u)
    (y,) = module.size_of_nothing(u, k=2)
    torch.testing.assert_close(y, 3 * u)


def test_a_layer_without_sizes_that_may_clash_refuses_none(build) -> None:
    module = build("size_of_nothing", SIZE_OF_NOTHING).module
    assert "ValueError" not in doc(module.SizeOfNothing)


def test_a_module_that_is_imported_again_says_what_its_operators_cost(
    build, tmp_path: Path
) -> None:
    """PyTorch keeps an operator that is defined; both modules know what it costs."""
    built = build("counted_again", BACKWARD)
    path = tmp_path / "counted_again.py"
    path.write_text(built.text, encoding="utf-8")
    again = dsfc.import_module(path)
    again.register_flops()
    with FlopCounterMode(display=False) as counted:
        again.CountedAgain(d=3)(torch.randn(1, 8, 3), mode="chunked")
    assert counted.get_total_flops() > 0


def operations(name: str, build, gradients: bool, **sizes: int) -> int:
    found = surface(build(name, None).module, sizes)
    found.module.register_flops()
    layer, u = found.cls(**found.sizes), torch.randn(1, 8, found.sizes["d"], requires_grad=True)
    with FlopCounterMode(display=False) as counted:
        y = layer(u, mode="chunked")
        if gradients:
            y.sum().backward()
    own = [n for op, n in counted.get_flop_counts()["Global"].items() if "dsfc" in str(op)]
    return sum(own)


@pytest.mark.parametrize(
    ("real", "complex_"), [("dlr_real", "s4d"), ("linear_rnn", "s4")]
)  # one number per state, or a full matrix
def test_complex_operations_count_four_times(real: str, complex_: str, build) -> None:
    """A product of complex numbers is four products; the sizes of a scan are its states'."""
    sizes = {"d": 4, "n": 4}
    for gradients in (False, True):
        counts = [operations(name, build, gradients, **sizes) for name in (real, complex_)]
        assert counts[1] % (4 * counts[0]) == 0 and counts[0] > 0, counts
