"""The row of a layer that flash-linear-attention calls: kept as written, broken by wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import dsfc
from dsfc.validate import run
from dsfc.validate.report import Outcome, Row

AXES_NAMED_LIKE_OPTIONS = """mixer named {
  dims d, heads bias = 2, mode = 3
  input u : d
  param W : d -> bias × mode
  state S : bias × mode
  S = 1/2 * S[i-1] + W u
  y = S
}"""


@pytest.fixture(autouse=True)
def no_other_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CHECKS", ())


def rows(path: Path) -> dict[str, Row]:
    return {row.name: row for row in dsfc.verify(path, fast=True).rows}


@pytest.mark.parametrize("name", ["gla", pytest.param("softmax", marks=pytest.mark.ci)])
def test_it_is_kept_and_the_layer_beside_it_too(name: str, tmp_path: Path) -> None:
    found = rows(dsfc.compile(name, out=tmp_path, layer=True, signature="fla"))
    assert list(found) == ["origin", "layer", "fla"]
    assert all(row.outcome is Outcome.KEPT for row in found.values())
    assert "byte for byte" in found["origin"].figure


def test_sizes_may_be_named_like_options(tmp_path: Path) -> None:
    spec = tmp_path / "named.dsf"
    spec.write_text(AXES_NAMED_LIKE_OPTIONS, encoding="utf-8")
    kept = rows(dsfc.compile(spec, out=tmp_path, layer=True, signature="fla"))["fla"]
    assert kept.outcome is Outcome.KEPT, kept.figure


WRONG = {
    "another mask": ("length :] != 0", "length :] == 0", "padded"),
    "first columns": ("attention_mask.shape[1] - length :]", ":length]", "padded, through a cache"),
    "no state": ("return State(*kept)", "return None", "through a cache"),
    "no gradient": ("tuple(_tensors_of(state))", "tuple(x.detach() for x in _tensors_of(state))",
                    "gradient of"),
    "another count": ("offset=tokens", "offset=1", "tokens, of"),
    "no cache": ("return y, None, past_key_values", "return y, None, None", "the cache"),
}  # fmt: skip
"""A piece of the module, what stands there instead, and what is said then."""


@pytest.mark.share(6, ci=5)
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_one_breaks_it(what: str, tmp_path: Path) -> None:
    path = dsfc.compile("gla", out=tmp_path, layer=True, signature="fla")
    old, new, said = WRONG[what]
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    broken = rows(path)["fla"]
    assert broken.outcome is Outcome.BROKEN and said in broken.figure, broken.figure
