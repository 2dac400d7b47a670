"""Which modes a module names, what it takes if nothing is said, and what it says of that."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from dsfc.backends.torch.cost import plan_costs
from dsfc.backends.torch.modes import MACHINES, Modes, modes
from torch.utils._python_dispatch import TorchDispatchMode

import dsfc
from dsfc.expr.evaluate import NamedArray, evaluate
from dsfc.plan.ir import Mode
from dsfc.validate.surface import surface

# One spec per form of scan, with and without a decay, real and complex; sizes of a small layer.
SPECS = {
    "normalized_attn": {"d": 32, "h": 4},
    "retnet": {"d": 32, "h": 4},
    "linear_attn": {"d": 32, "h": 4},
    "gla": {"d": 32, "h": 4},
    "deltanet": {"d": 32, "h": 4},
    "gated_deltanet": {"d": 32, "h": 4},
    "s6": {"d": 32, "n": 8},
    "rg_lru": {"d": 32},
    "s4d": {"d": 16, "n": 16},
    "lru": {"d": 32, "n": 32},
    "mega_ema": {"d": 32, "n": 8},
    "linear_rnn": {"d": 32, "n": 32},
    "s4": {"d": 16, "n": 16},
    "rwkv7": {"d": 32, "h": 4, "r": 4},
}
LENGTHS = (1, 2, 3, 4, 8, 16, 32, 64, 128, 512, 2048, 8192)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ModuleType]:
    """Compiles a shipped spec and imports the module, once."""
    folder = tmp_path_factory.mktemp("modes")

    @cache
    def make(name: str) -> ModuleType:
        return dsfc.import_module(dsfc.compile(name, out=folder / f"{name}.py"))

    return make


def layer(module: ModuleType, sizes: dict[str, int]) -> torch.nn.Module:
    built: torch.nn.Module = getattr(module, module.__all__[0])(**sizes)
    return built


def given(module: ModuleType, sizes: dict[str, int], batch: int, length: int) -> dict[str, Any]:
    """What a layer gives its forward operator."""
    caught: dict[str, Any] = {}

    class Catch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            if func.namespace.startswith("dsfc_"):
                names = [a.name for a in func._schema.arguments]
                caught.update(zip(names, args, strict=True))
            return func(*args, **(kwargs or {}))

    with torch.no_grad(), Catch():
        layer(module, sizes)(torch.randn(batch, length, sizes["d"]))
    return caught


def calls(run: Callable[[], object]) -> int:
    """Counts calls of operators, views too."""
    count = 0

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            nonlocal count
            count += 1
            return func(*args, **(kwargs or {}))

    with Count():
        run()
    return count


class Numbers:
    """Sizes of axes, batch, length and chunk."""

    def __init__(self, **numbers: int) -> None:
        self.numbers = numbers

    def size(self, axis: Any) -> int:
        return self.numbers[axis.name]

    def param(self, name: str) -> NamedArray:
        return NamedArray((), np.asarray(float(self.numbers[name])))


# --- names ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("legal", "items", "choices"),
    [
        (("recurrent",), '"recurrent",', "`auto`, `recurrent` or `exact`"),
        (("a", "b"), '"a", "b"', "`auto`, `a`, `b` or `exact`"),
    ],
)
def test_modes_are_listed_as_text_and_as_a_tuple(
    legal: tuple[str, ...], items: str, choices: str
) -> None:
    found = Modes((*(Mode(name, True, "") for name in legal), Mode("no", False, "")), ())
    assert (found.items, found.choices) == (items, choices)


def test_without_a_recurrence_there_is_nothing_to_choose(load) -> None:
    found = modes(load("gate", "dims d\ninput u : d\ny = silu(u)").plan)
    assert not found.scans and not found.costs and found.default_chunk == "64"


# --- counts ---------------------------------------------------------------------------------------
@pytest.mark.share(6)
@pytest.mark.parametrize("name", SPECS)
def test_a_module_counts_as_its_plan_does(name: str, made, monkeypatch) -> None:
    module, plan, sizes = made(name), dsfc.load(name).plan, SPECS[name]
    monkeypatch.setitem(module.RATES, "cpu", (1.0, 1.0, 1.0))
    batch, length, chunk = 3, 96, 32
    numbers = vars(layer(module, sizes))
    axes = {k: v for k, v in numbers.items() if isinstance(v, int) and len(k) == 1}
    at = Numbers(**axes, batch=batch, length=length, chunk=chunk)
    state = given(module, sizes, batch, length)["S"]
    _, _, terms = module._mode("auto", chunk, "cpu", length, *state.shape)
    assert list(terms) == [c.mode for c in plan_costs(plan)] == list(module.MODES)
    for cost in plan_costs(plan):
        want = [float(evaluate(e, at).data) for e in (cost.calls, cost.operations, cost.words)]
        tokens = batch * length
        assert terms[cost.mode] == pytest.approx((want[0], tokens * want[1], tokens * want[2]))


@pytest.mark.share(12)
@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("length", [4, 64, 256])
def test_calls_are_those_that_a_mode_makes(name: str, length: int, made, monkeypatch) -> None:
    """A choice needs no more than half as many again; the split of a rest is not counted."""
    module = made(name)
    monkeypatch.setitem(module.RATES, "cpu", (1.0, 0.0, 0.0))
    tensors = given(module, SPECS[name], 1, length)
    for mode in module.MODES:
        if name in ("s4d", "lru", "mega_ema") and mode in ("chunked", "scan") and length < 65:
            continue  # one chunk needs no states: `parallel` is as good, and counted
        counted = calls(lambda m=mode: module._forward(**{**tensors, "mode": m}))
        predicted = module._mode(mode, module.CHUNK, "cpu", length, *tensors["S"].shape)[2][mode]
        assert 1 / 1.5 < predicted[0] / counted < 1.5, (mode, predicted[0], counted)


def test_attention_makes_its_calls_and_takes_what_is_fused(made, monkeypatch) -> None:
    module = made("softmax")
    mixer = layer(module, {"d": 32})
    for length in (4, 64):
        q, k, v = torch.randn(3, 1, length, 4, 8)
        seen = torch.ones(1, length)
        with monkeypatch.context() as patched:
            patched.setitem(module.RATES, "cpu", (1.0, 0.0, 0.0))
            predicted = module._mode("auto", 64, "cpu", length, 1, 4, 8, 8)[2]
        for mode in module.MODES:
            counted = calls(lambda m=mode, x=(q, k, v, seen): module._attention(*x, 0.3, m))
            assert 1 / 1.5 < predicted[mode][0] / counted < 1.5, (mode, predicted, counted)
    for length in LENGTHS:
        for device in MACHINES:
            said = mixer.explain(length, device=device)
            assert said.startswith(f"mode fused, torch on {device}: predicted recurrent ")
    assert "scaled_dot_product_attention" in said and "not legal: chunked: no state" in said


# --- the choice -----------------------------------------------------------------------------------
@pytest.mark.share(6)
@pytest.mark.parametrize("device", [*MACHINES, "other"])
@pytest.mark.parametrize("name", SPECS)
def test_short_sequences_run_token_by_token_and_long_ones_do_not(
    name: str, device: str, made
) -> None:
    module = made(name)
    shape = given(module, SPECS[name], 1, 1)["S"].shape
    taken = [module._mode("auto", module.CHUNK, device, length, *shape)[0] for length in LENGTHS]
    assert taken[0] in ("recurrent", "parallel")
    assert taken[-1] in ("chunked", "fft", "scan")
    later = [mode != "recurrent" for mode in taken]
    assert later == sorted(later), taken
    whole = [mode == "parallel" for mode in taken if mode != "recurrent"]
    assert whole == sorted(whole, reverse=True), taken


@pytest.mark.parametrize("length", [1024, 4096, 16384])
def test_long_convolutions_of_many_rows_go_by_fft(length: int, made) -> None:
    """On a CPU; measured, chunks take 1.2 to 2 times as long (`benchmarks/README.md`)."""
    net = layer(made("s4d"), {"d": 256, "n": 32})
    assert net.explain(batch=8, length=length, device="cpu").startswith("mode fft")


@pytest.mark.parametrize("name", SPECS)
def test_time_grows_with_length_and_batch(name: str, made) -> None:
    module = made(name)
    _, *state = given(module, SPECS[name], 1, 1)["S"].shape
    for before, after in pairwise(LENGTHS[LENGTHS.index(64) :]):
        short = module._mode("auto", module.CHUNK, "cpu", before, 1, *state)[2]
        long = module._mode("auto", module.CHUNK, "cpu", after, 1, *state)[2]
        wide = module._mode("auto", module.CHUNK, "cpu", before, 2, *state)[2]
        for mode in module.MODES:
            assert sum(short[mode]) < sum(long[mode])
            assert sum(short[mode]) <= sum(wide[mode])


def test_slow_calls_make_for_fewer_of_them(made, monkeypatch) -> None:
    module = made("retnet")
    shape = 16, 1, 4, 64, 64
    assert module._mode("auto", 64, "cpu", *shape)[0] != "recurrent"
    monkeypatch.setitem(module.RATES, "cpu", (1e-12, 1.0, 1e-12))
    assert module._mode("auto", 64, "cpu", *shape)[0] == "recurrent"


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("shape", [(0, 2), (3, 0)])
def test_nothing_is_a_shape_too(name: str, shape: tuple[int, int], made) -> None:
    batch, length = shape
    u = torch.randn(batch, length, SPECS[name]["d"])
    assert layer(made(name), SPECS[name])(u).shape[:2] == shape


def test_what_reads_across_boundaries_is_left_out_on_request(made) -> None:
    module = made("s4d")
    shape = 1000, 2, 16, 16
    assert module._mode("auto", 64, "cpu", *shape)[0] == "fft"
    chosen = module._mode("auto without fft", 64, "cpu", *shape)[0]
    times = module._mode("auto", 64, "cpu", *shape)[2]
    assert chosen == min(set(times) - {"fft"}, key=lambda m: sum(times[m]))


# --- what a layer says ----------------------------------------------------------------------------
def test_explain_shows_the_choice_its_costs_and_reasons(made) -> None:
    module = made("normalized_attn")
    mixer = layer(module, {"d": 64})
    first, legal, illegal, later, last = mixer.explain(1000, 4).split("\n")
    assert first.startswith("mode chunked, chunk 64, torch on cpu: predicted recurrent ")
    assert first.count(" ms") == len(module.MODES) and "; mostly " in first
    assert all(f"{m.name}: {m.why}" in legal for m in dsfc.load("normalized_attn").plan.modes[:4])
    assert (
        illegal
        == "not legal: fft: Λ, B or C depends on the token, or a full Λ mixes what goes in and out"
    )
    assert later.startswith("later tokens that are finite change no earlier output; ")
    assert last == f"gauge: S: identity; spec: {module.SPEC}"
    assert mixer.explain(1).startswith("mode recurrent, chunk 1, ")
    assert mixer.explain(1000, mode="parallel").startswith("mode parallel, chunk 1000, ")
    assert "mostly calls" in mixer.explain(16, device=torch.device("cuda"))
    # Rates are by type of device, as where the operator runs, not by number.
    assert mixer.explain(300, device="cpu:0").replace("cpu:0", "cpu") == mixer.explain(300)


def test_explain_agrees_with_the_operator(made) -> None:
    for name, sizes in SPECS.items():
        module = made(name)
        for batch, length in ((1, 1), (2, 8), (3, 300)):
            shape = given(module, sizes, batch, length)["S"].shape
            chosen = module._mode("auto", module.CHUNK, "cpu", length, *shape)[0]
            said = layer(module, sizes).explain(length, batch)
            assert said.startswith(f"mode {chosen}, "), (name, said)


@pytest.mark.parametrize("why", ["packed", "masked"])
def test_packing_and_masks_exclude_fft(why: str, made) -> None:
    mixer = layer(made("s4d"), SPECS["s4d"])
    assert mixer.explain(1000).startswith("mode fft, ")
    assert not mixer.explain(1000, **{why: True}).startswith("mode fft, ")
    assert "not packed or masked: fft, since" in mixer.explain(1000)


@pytest.mark.parametrize("mode", ["fft", "fast", ""])
def test_explain_refuses_what_forward_refuses(mode: str, made) -> None:
    mixer = layer(made("normalized_attn"), {"d": 8})
    for call in (
        lambda: mixer.explain(10, mode=mode),
        lambda: mixer(torch.ones(1, 2, 8), mode=mode),
    ):
        with pytest.raises(ValueError, match=f"mode must be auto or one of .*, got {mode!r}"):
            call()


@pytest.mark.parametrize(
    ("name", "mode"),
    [("rwkv4", "chunkd"), ("rwkv4", "parallel"), ("s4d", "auto_"), ("softmax", "scan")],
)
def test_the_functional_form_refuses_a_mode_it_lacks(name: str, mode: str, made) -> None:
    found = surface(made(name))
    values = found.values(found.sample(5))
    with pytest.raises(ValueError, match=f"mode must be auto or one of .*, got '{mode}'"):
        found.functional(**values, mode=mode)


def test_explain_names_each_of_several_scans(made) -> None:
    text = layer(made("rwkv4"), {"d": 8}).explain(100)
    assert [line.split(":")[0] for line in text.split("\n")[:2]] == ["S", "S_2"]
