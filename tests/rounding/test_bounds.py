"""No error that is seen is above what is certified; what leaves roundings out is below it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import dsfc
from dsfc.api.locate import shipped_names
from dsfc.rounding.analyse import as_run, bound, sources
from dsfc.rounding.enclosure import UnknownError

FLOAT32, BFLOAT16, FLOAT16 = torch.float32, torch.bfloat16, torch.float16
FEW = ("retnet", "gla", "ssd", "lru", "softmax", "linear_attn", "deltanet")


def held(case: Callable, spec: str, dtype: torch.dtype, modes: int, points: int = 4) -> int:
    """Holds a module to its bounds, and returns how many modes have one."""
    own, certified = case(spec, dtype), 0
    for mode in own.face.modes[:modes]:
        try:
            whole = bound(own.call(mode))
        except UnknownError:
            continue
        certified += 1
        for point in own.points(points):
            error, y = own.error(mode, point)
            if not bool(torch.isfinite(error).all()):
                assert whole.hazards, f"{spec}, {mode}: NaN without a warning"
                continue
            assert whole.holds(error), f"{spec}, {mode}, {dtype}: beyond the bound on the domain"
            here = bound(own.call(mode, point))
            assert here.holds(error), f"{spec}, {mode}, {dtype}: beyond the bound at the point"
            known = as_run(own.call(mode, point), y)
            assert known >= float(error.max()) * (1 - 1e-9)
    return certified


def test_no_error_is_above_its_bound(case: Callable) -> None:
    assert held(case, "retnet", BFLOAT16, modes=2, points=2) == 2


@pytest.mark.ci
@pytest.mark.share(1, ci=5)
@pytest.mark.parametrize("spec", FEW)
def test_no_error_of_any_mode_is_above_its_bound(case: Callable, spec: str) -> None:
    own = case(spec, BFLOAT16)
    assert held(case, spec, BFLOAT16, modes=9, points=2) == len(own.face.modes)


@pytest.mark.ci
def test_no_error_in_float32_is_above_its_bound(case: Callable) -> None:
    assert held(case, "lru", FLOAT32, modes=9) == 5


@pytest.mark.full
@pytest.mark.parametrize("dtype", [FLOAT32, BFLOAT16, FLOAT16])
@pytest.mark.parametrize("spec", sorted(shipped_names()))
def test_no_error_of_a_shipped_mixer_is_above_its_bound(
    case: Callable, spec: str, dtype: torch.dtype
) -> None:
    try:
        case(spec, dtype)
    except dsfc.DiagnosticError:
        pytest.skip("no module is written for it: a base, a modifier, or outside the language")
    held(case, spec, dtype, modes=9, points=8)


ONE = """
mixer scaled { dims d
  input u, w : d
  y = u * w
}
mixer quotient { dims d
  input u, w : d
  y = u / w
}
mixer steep { dims d
  input u : d
  y = exp(exp(4 * u))
}
mixer gate { dims d
  input u : d
  y = u * sigmoid(u)
}
"""


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A spec with one of the mixers above."""
    folder = tmp_path_factory.mktemp("one")

    def write(name: str) -> Path:
        path = folder / f"{name}.dsf"
        (text,) = [part for part in ONE.split("mixer ") if part.startswith(name)]
        path.write_text("mixer " + text, encoding="utf-8")
        return path

    return write


def test_a_product_is_bounded_by_little_more_than_is_seen(case: Callable, one: Callable) -> None:
    own = case(one("scaled"), BFLOAT16, length=64)
    (mode,) = own.face.modes[:1]
    whole = bound(own.call(mode))
    seen = max(float(own.error(mode, p)[0].max()) for p in own.points(16))
    assert seen <= whole.worst <= 4 * seen


def test_what_leaves_out_the_rounding_is_below_what_is_seen(case: Callable, one: Callable) -> None:
    own = case(one("scaled"), BFLOAT16, length=64)
    mode = own.face.modes[0]
    call, point = own.call(mode), list(own.points(3))[2]
    whole, (error, _) = bound(call), own.error(mode, point)
    assert whole.holds(error)
    assert not whole.holds(error, share=0.1)
    (place, alone), *_ = sources(call, whole)
    assert "*" in place.text
    assert 0 < alone <= whole.worst
    others = [p for p in whole.places if p != place]
    assert all(not bound(call, p).holds(error) for p in others)


def test_a_divisor_that_may_be_0_is_warned_of(case: Callable, one: Callable) -> None:
    own = case(one("quotient"))
    whole = bound(own.call(own.face.modes[0]))
    assert whole.hazards[0].kind == "division by 0 is not ruled out"
    assert "/" in whole.hazards[0].place.text
    assert whole.worst == math.inf


def test_what_may_overflow_is_warned_of_and_does(case: Callable, one: Callable) -> None:
    own = case(one("steep"), radius=2.0)
    mode = own.face.modes[0]
    assert any("overflow of float32" in h.kind for h in bound(own.call(mode)).hazards)
    assert not bool(torch.isfinite(own.error(mode, next(iter(own.points())))[1]).all())
    small = case(one("steep"), radius=0.5)
    assert not bound(small.call(mode)).hazards


def test_float16_overflows_where_float32_does_not(case: Callable) -> None:
    wide, narrow = (case("retnet", d, radius=3e3) for d in (FLOAT32, FLOAT16))
    assert not bound(wide.call("recurrent")).hazards
    assert any("float16" in h.kind for h in bound(narrow.call("recurrent")).hazards)


def test_an_operator_without_a_rule_is_unknown(case: Callable) -> None:
    with pytest.raises(UnknownError, match="no rule"):
        bound(case("performer").call("recurrent"))
