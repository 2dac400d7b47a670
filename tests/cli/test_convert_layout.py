"""`dsfc convert --layout`: weights of a published layer are moved and run, all others refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import Result

import dsfc

SPEC = """\
mixer leak { dims d
  input u : d
  param W : d -> d ~ normal(0, 1)
        a : d positive = 1
  state s : d
  s = exp(-a) * s[i-1] + W u
  y = s
}
"""
MAP = """\
title = "Leaks"
spec = "leak.dsf"

[source]
"proj.weight" = ["d", "d"]
rate = [1, "d"]

[entry.W]
of = "proj.weight"
by = [{ op = "transpose", order = [1, 0] }]

[entry.log_a]
of = "rate"
by = [{ op = "reshape", shape = ["d"] }, { op = "log" }]

[reference]
class = "MODULE:Leak"

[reference.sizes]
width = "d"
"""
THEIRS = """\
import torch


class Leak(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = torch.nn.Linear(width, width, bias=False)
        self.rate = torch.nn.Parameter(torch.ones(1, width))

    def forward(self, x):
        state, states = torch.zeros_like(x[:, 0]), []
        decay = torch.exp(-self.rate.float())
        for token in x.unbind(1):
            state = decay * state + token @ self.proj.weight
            states.append(state)
        return torch.stack(states, 1), None
"""


@pytest.fixture
def leak(
    spec: Callable, folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Writes the spec, its map, the published layer as a module of a name of its own, and weights.

    Returns the name of that module.
    """
    spec(SPEC, "leak.dsf")
    name = f"published_{abs(hash(request.node.nodeid))}"
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (folder / f"{name}.py").write_text(THEIRS)
    (folder / "leak.toml").write_text(MAP.replace("MODULE", name))
    torch.save(tensors(), folder / "theirs.pt")
    return name


def tensors() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(3, 3, generator=generator)
    return {"proj.weight": weight, "rate": torch.rand(1, 3, generator=generator) + 0.1}


def words(result: Result) -> str:
    return " ".join(result.output.split())


def refused(result: Result, folder: Path, code: str, reason: str) -> None:
    assert result.exit_code == 1, result.output
    assert f"error[{code}]" in result.output
    assert reason in words(result)
    assert not list(folder.glob("ours*"))


def test_weights_are_moved_and_both_layers_are_run(run: Callable, leak: str, folder: Path) -> None:
    result = run("convert", "--layout", "leak.toml", "theirs.pt", "--out", "ours.pt",
                 "--run-reference")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "W is proj.weight, transpose: 9 numbers, proved, bit for bit the same" in result.output
    assert "log_a is rate, reshape, log: 3 numbers, computed, log rounded once" in result.output
    assert f"run: Leak of {leak} and the module differ by" in result.output
    module = dsfc.import_module(dsfc.compile(folder / "leak.dsf", out=folder / "leak.py"))
    layer = module.Leak(d=3)
    layer.load_state_dict(torch.load("ours.pt", weights_only=True))
    assert torch.equal(layer.W.T, tensors()["proj.weight"])
    u = torch.randn(2, 5, 3)
    state, decay = torch.zeros(2, 3), torch.exp(-tensors()["rate"])
    for i in range(5):
        state = decay * state + u[:, i] @ tensors()["proj.weight"]
        torch.testing.assert_close(layer(u)[:, i], state)


def test_a_layer_that_a_map_names_is_not_imported_unasked(
    run: Callable, leak: str, folder: Path
) -> None:
    result = run("convert", "--layout", "leak.toml", "theirs.pt", "--out", "ours.pt")
    assert result.exit_code == 0, result.output
    assert f"{leak} is imported and run only with --run-reference" in words(result)
    assert leak not in sys.modules


def test_layers_that_differ_are_refused(run: Callable, leak: str, folder: Path) -> None:
    file = folder / f"{leak}.py"
    file.write_text(THEIRS.replace("token @ self.proj.weight", "self.proj(token)"))
    result = run("convert", "--layout", "leak.toml", "theirs.pt", "--out", "ours.pt",
                 "--run-reference")  # fmt: skip
    refused(result, folder, "E-CONVERT", "the outputs differ by")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("torch.ones(1, width)", "torch.ones(2)", "Leak is not made with these weights"),
        ("class Leak", "class Leek", "has no Leak"),
        ("class Leak(torch.nn.Module)", "class Leak", "is no class of layers"),
        ("decay * state", "1 / 0", "Leak does not run: division by zero"),
        ("states, 1)", "states)", "Leak gives no `[B, L, d]` of `[B, L, d]`"),
    ],
)
def test_a_layer_that_is_none_is_refused(
    run: Callable, leak: str, folder: Path, old: str, new: str, reason: str
) -> None:
    (folder / f"{leak}.py").write_text(THEIRS.replace(old, new))
    result = run("convert", "--layout", "leak.toml", "theirs.pt", "--out", "ours.pt",
                 "--run-reference")  # fmt: skip
    refused(result, folder, "E-CONVERT", reason)


def test_there_and_back_with_safetensors(run: Callable, leak: str, folder: Path) -> None:
    """Other layers stand in the same file; what is only moved comes back bit for bit."""
    safetensors = pytest.importorskip("safetensors.torch")
    whole = {f"layers.3.{n}": x for n, x in tensors().items()}
    whole["layers.4.rate"] = torch.arange(3)
    safetensors.save_file(whole, folder / "theirs.safetensors")
    there = run("convert", "--layout", "leak.toml", "theirs.safetensors", "--out",
                "ours.safetensors", "--prefix", "layers.3.", "--run-reference")  # fmt: skip
    assert there.exit_code == 0, there.output
    back = run("convert", "--layout", "leak.toml", "--back", "ours.safetensors", "--out",
               "back.safetensors", "--prefix", "layers.3.", "--run-reference")  # fmt: skip
    assert back.exit_code == 0, back.output
    written = safetensors.load_file(folder / "back.safetensors")
    assert list(written) == ["layers.3.proj.weight", "layers.3.rate"]
    assert torch.equal(written["layers.3.proj.weight"], tensors()["proj.weight"])
    torch.testing.assert_close(written["layers.3.rate"], tensors()["rate"])


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda w: w.pop("rate"), "the weights lack rate"),
        (lambda w: w.update(bias=w["rate"]), "the layout has no bias; --prefix says"),
        (lambda w: w.update(rate=w["rate"][:, :2]), "`rate` is 1 × 2, and 1 × 3 by the layout"),
        (lambda w: w.update(rate=-w["rate"]), "log_a is not finite: log has no value"),
        (lambda w: w.clear(), "the weights lack proj.weight, rate"),
    ],
    ids=["missing", "unknown", "another shape", "no value", "empty"],
)
def test_weights_of_another_layer_are_refused(
    run: Callable, leak: str, folder: Path, spoil: Callable, reason: str
) -> None:
    weights = tensors()
    spoil(weights)
    torch.save(weights, folder / "theirs.pt")
    result = run("convert", "--layout", "leak.toml", "theirs.pt", "--out", "ours.pt")
    refused(result, folder, "E-CONVERT", reason)


def test_a_map_of_another_module_is_refused(run: Callable, leak: str, folder: Path) -> None:
    text = (folder / "leak.toml").read_text().replace("[entry.log_a]", "[entry.a]")
    (folder / "leak.toml").write_text(text)
    result = run("convert", "--layout", "leak.toml", "theirs.pt", "--out", "ours.pt")
    refused(result, folder, "E-LAYOUT", "leak.toml:12:1")
    assert "the module has no entry a" in result.output
    assert "no row gives log_a" in result.output


def test_a_file_without_the_prefix_is_refused(run: Callable, leak: str, folder: Path) -> None:
    result = run("convert", "--layout", "leak.toml", "theirs.pt", "--out", "ours.pt", "--prefix",
                 "layers.")  # fmt: skip
    refused(result, folder, "E-CONVERT", "no name in theirs.pt begins with `layers.`")


@pytest.mark.parametrize(
    "arguments",
    [
        ("theirs.pt",),
        ("gla", "theirs.pt"),
        ("gla", "gla", "theirs.pt", "--back"),
        ("gla", "gla", "theirs.pt", "--layout", "mamba"),
        ("theirs.pt", "--layout", "mamba", "--map", "a=b"),
        ("theirs.pt", "--layout", "mamba", "--size", "d"),
    ],
)
def test_words_that_do_not_go_together(run: Callable, arguments: tuple[str, ...]) -> None:
    assert run("convert", *arguments, "--out", "ours.pt").exit_code == 2
