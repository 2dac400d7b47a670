"""`dsfc convert`: weights that fit are carried over and checked, all others refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import dsfc

PAIR = """\
mixer divided extends qkv {
  param w_η : d -> h ~ normal(0, 1)
        c : h positive = 1
  η = exp(w_η u)
  y = sum[j ≤ i](q · k[j] * v[j]) / (c * η)
}
mixer moved extends qkv {
  param w : d -> h ~ normal(0, 1)
        b : h positive = 1
  y = exp(-w u) * sum[j ≤ i](q · k[j] / b * v[j])
}
mixer loose extends moved { param b : h nonzero = 1 }
mixer twice extends moved { y = 2 * exp(-w u) * sum[j ≤ i](q · k[j] / b * v[j]) }
"""
NAMES = ("--map", "w=w_eta", "--map", "b=c")


@pytest.fixture
def module(spec: Callable, folder: Path) -> Callable:
    """An emitted class of a mixer of the pair."""
    file = spec(PAIR, "pair.dsf")

    def made(mixer: str) -> type[torch.nn.Module]:
        path = dsfc.compile(file, out=folder, mixer=mixer)
        return getattr(dsfc.import_module(path), mixer.capitalize())

    return made


@pytest.fixture
def weights(module: Callable, folder: Path) -> torch.nn.Module:
    """The first module, its weights saved."""
    torch.manual_seed(0)
    first = module("divided")(d=16, h=2, dtype=torch.float64)
    with torch.no_grad():
        for p in first.parameters():
            p.normal_()
    torch.save(first.state_dict(), folder / "first.pt")
    return first


@pytest.mark.ci
def test_weights_are_carried_over(
    run: Callable, module: Callable, weights: torch.nn.Module, folder: Path
) -> None:
    result = run("convert", "pair.dsf:divided", "pair.dsf:moved", "first.pt", "--out", "second.pt",
                 *NAMES)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "w is w_eta" in result.output and "log_b is log_c" in result.output
    second = module("moved")(d=16, h=2, dtype=torch.float64)
    second.load_state_dict(torch.load(folder / "second.pt", weights_only=True))
    u = torch.randn(2, 9, 16, dtype=torch.float64)
    torch.testing.assert_close(second(u), weights(u), rtol=1e-9, atol=1e-9)
    assert torch.equal(second.log_b, weights.log_c)


def test_a_map_is_asked_for(run: Callable, weights: torch.nn.Module, folder: Path) -> None:
    result = run("convert", "pair.dsf:divided", "pair.dsf:moved", "first.pt", "--out", "second.pt",
                 "--map", "w=w_eta")  # fmt: skip
    refused(result, folder, "different functions of equal parameters")


def refused(result: object, folder: Path, *reasons: str) -> None:
    assert result.exit_code == 1, result.output
    assert "error[E-CONVERT]" in result.output
    for reason in reasons:
        assert reason in " ".join(result.output.split())
    assert [p.name for p in folder.iterdir() if "second" in p.name] == []


@pytest.mark.ci
def test_what_is_no_proof_is_refused(run: Callable, weights: torch.nn.Module, folder: Path) -> None:
    for other, reason in (("twice", "different functions"), ("loose", "stored in another way")):
        result = run("convert", "pair.dsf:divided", f"pair.dsf:{other}", "first.pt",
                     "--out", "second.pt", *NAMES)  # fmt: skip
        refused(result, folder, reason)


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda w: w.pop("W_Q"), "the weights lack W_Q"),
        (lambda w: w.update(extra=w["W_Q"]), "has no extra"),
        (lambda w: w.update(W_Q=w["W_Q"][:1]), "the sizes"),
        (lambda w: w.update(log_c="text"), "no tensor"),
    ],
)
def test_weights_of_another_module_are_refused(
    run: Callable, weights: torch.nn.Module, folder: Path, spoil: Callable, reason: str
) -> None:
    state = dict(weights.state_dict())
    spoil(state)
    torch.save(state, folder / "first.pt")
    result = run("convert", "pair.dsf:divided", "pair.dsf:moved", "first.pt", "--out", "second.pt",
                 *NAMES)  # fmt: skip
    refused(result, folder, reason)


SIZED = """\
mixer powers { dims heads h = 4, n
  input u : h × n
  param w : h × n ~ normal(0, 1)
  state s : h × n
  s = (1 - 2^(-5 - iota[h])) * s[i-1] + w * u
  y = s
}
mixer again extends powers { s = (1 - 1 / 2^(iota[h] + 5)) * s[i-1] + w * u }
mixer line extends powers { s = (31/32 + iota[h] / 64) * s[i-1] + w * u }
mixer bare { dims heads h = 4, n
  input u : h × n
  param w : n ~ normal(0, 1)
  state s : h × n
  s = (1 - 2^(-5 - iota[h])) * s[i-1] + w * u
  y = s
}
mixer bare_again extends bare { s = (1 - 1 / 2^(iota[h] + 5)) * s[i-1] + w * u }
"""


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("heads", [3, 4])
def test_what_holds_at_some_sizes_serves_weights_of_these(
    run: Callable, spec: Callable, folder: Path, heads: int
) -> None:
    """Declared are four heads; what the weights have is proved anew."""
    file = spec(SIZED, "sized.dsf")
    module = dsfc.import_module(dsfc.compile(file, out=folder, mixer="powers")).Powers
    torch.save(module(h=heads, n=2).state_dict(), folder / "first.pt")
    done = run("convert", "sized.dsf:powers", "sized.dsf:again", "first.pt", "--out", "second.pt")
    assert done.exit_code == 0, done.output
    (folder / "second.pt").unlink()
    other = run("convert", "sized.dsf:powers", "sized.dsf:line", "first.pt", "--out", "second.pt")
    refused(other, folder, "different functions of equal parameters")


@pytest.mark.ci
def test_weights_that_do_not_say_a_size_are_refused(
    run: Callable, spec: Callable, folder: Path
) -> None:
    file = spec(SIZED, "sized.dsf")
    module = dsfc.import_module(dsfc.compile(file, out=folder, mixer="bare")).Bare
    torch.save(module(n=2).state_dict(), folder / "first.pt")
    result = run("convert", "sized.dsf:bare", "sized.dsf:bare_again", "first.pt", "--out",
                 "second.pt")  # fmt: skip
    refused(result, folder, "the weights do not say what h is")


NAMED = """\
mixer lasting { dims in
  input u : in
  param λ : in unit ~ uniform(0.2, 0.8)
  buffer b : in = 3
  state s : in
  s = λ * s[i-1] + u * b / b
  y = s
}
mixer kept { dims in
  input λ : in; x : in nonzero
  param def : in unit ~ uniform(0.2, 0.8)
  buffer b : in = 2
  state s : in
  s = λ * (x * b / (b * x)) + s[i-1] * def
  y = s
}
"""


@pytest.mark.ci
def test_words_of_python_and_values_that_the_second_alone_has(
    run: Callable, spec: Callable, folder: Path
) -> None:
    """Modules spell some names otherwise; a buffer with another value keeps it."""
    file = spec(NAMED, "named.dsf")
    module = dsfc.import_module(dsfc.compile(file, out=folder, mixer="lasting")).Lasting
    torch.save(module(in_=5).state_dict(), folder / "first.pt")
    done = run("convert", "named.dsf:lasting", "named.dsf:kept", "first.pt", "--out", "second.pt",
               "--map", "lambda=u", "--map", "def=lambda")  # fmt: skip
    assert done.exit_code == 0, done.output
    first, second = (torch.load(folder / f"{name}.pt") for name in ("first", "second"))
    assert torch.equal(second["logit_def_"], first["logit_lambda_"])
    assert second["b"].tolist() == [2.0] * 5


RANGED = """\
mixer gated { dims d
  input u : d; g : d unit
  param a : d
  state s : d
  s = g * s[i-1] + a * u
  y = s
}
mixer rooted { dims d
  input u : d; w : d unit
  param a : d
  state s : d
  s = w * s[i-1] + u
  y = a * s * (1 + log(w)^2) / (1 + log(w)^2)
}
"""


@pytest.mark.ci
def test_inputs_are_drawn_where_both_are_defined(
    run: Callable, spec: Callable, folder: Path
) -> None:
    file = spec(RANGED, "ranged.dsf")
    module = dsfc.import_module(dsfc.compile(file, out=folder, mixer="gated")).Gated
    torch.save(module(d=3).state_dict(), folder / "first.pt")
    done = run("convert", "ranged.dsf:gated", "ranged.dsf:rooted", "first.pt", "--out",
               "second.pt", "--map", "w=g")  # fmt: skip
    assert done.exit_code == 0, done.output


class Planted:
    """What must not be called when a file is read."""

    def __reduce__(self) -> tuple:
        return Path.touch, (Path("planted"),)


@pytest.mark.ci
def test_nothing_in_a_file_of_weights_is_executed(
    run: Callable, weights: torch.nn.Module, folder: Path
) -> None:
    torch.save({"W_Q": Planted()}, folder / "first.pt")
    result = run("convert", "pair.dsf:divided", "pair.dsf:moved", "first.pt", "--out", "second.pt",
                 *NAMES)  # fmt: skip
    refused(result, folder, "no file of weights")
    assert not (folder / "planted").exists()


def test_nothing_is_replaced(run: Callable, weights: torch.nn.Module, folder: Path) -> None:
    (folder / "second.pt").write_text("mine")
    result = run("convert", "pair.dsf:divided", "pair.dsf:moved", "first.pt", "--out", "second.pt",
                 *NAMES)  # fmt: skip
    assert result.exit_code == 1 and "exists already" in result.output
    assert (folder / "second.pt").read_text() == "mine"
