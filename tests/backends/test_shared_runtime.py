"""The runtime section: real files, the same bytes in every module."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from dsfc.backends.shared.runtime.functions import _exprel
from dsfc.backends.shared.runtime.operators import _recurring
from dsfc.backends.shared.runtime.rows import _by_rows, _replaced
from dsfc.backends.shared.runtime.sequences import _EACH, _fir, _last, _reversed
from dsfc.backends.shared.runtime.states import _kept_by_name, _restored
from dsfc.backends.shared.section import section
from dsfc.backends.torch.context import runtime

from dsfc.emit.audit import audit


def test_the_section_is_named_by_its_hash_and_holds_no_import() -> None:
    text = section().text
    assert section().sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert not [line for line in text.split("\n") if line.startswith(("import ", "from "))]
    assert {"_by_rows", "_fits", "_accumulate", "_l2norm"} <= set(section().names)
    assert len(set(section().names)) == len(section().names)


def test_a_target_adds_every_statement_behind_the_imports_of_a_file() -> None:
    source = '"""A file."""\n\nimport math\n\n# Why.\nx = math.pi\nprint(x)\ny = 2\n'
    longer = section((source,), ("import math", "from pathlib import Path"))
    assert longer.text == f"{section().text}\n\n\n# Why.\nx = math.pi\nprint(x)\ny = 2"
    assert longer.names == (*section().names, "x", "y") and longer.sha256 != section().sha256
    assert {"math", "print"} <= longer.named and longer.modules == {"math", "pathlib"}


def test_the_audit_accepts_the_section() -> None:
    audit(section().text)
    audit(runtime(section()).text)


def test_what_processes_need_that_share_a_sequence_comes_behind_the_rest() -> None:
    longer = runtime(section())
    assert longer.text.startswith(section().text) and "_by_ranks" in longer.names
    assert len(set(longer.names)) == len(longer.names)


def test_a_filter_sums_over_its_taps() -> None:
    x, weight = torch.arange(5.0).reshape(1, 5, 1), torch.tensor([[1.0, 10.0, 100.0]])
    assert _fir(x, weight, 1, 2).flatten().tolist() == [2 + 10, 3 + 20 + 100, 4 + 30 + 200]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exprel_is_right_to_the_last_digits_on_both_sides_of_its_series(dtype: torch.dtype) -> None:
    eps = torch.finfo(dtype).eps
    sizes = [1e-9, *(share * eps**0.25 for share in (0.5, 0.99, 1.01, 2.0)), 1.0, 30.0]
    x = torch.tensor([*sizes, *(-size for size in sizes), 0.0], dtype=dtype)
    want = [math.expm1(v) / v if v else 1.0 for v in x.tolist()]
    found = _exprel(x).double()
    assert torch.allclose(found, torch.tensor(want, dtype=torch.float64), rtol=2 * eps, atol=0)


def test_reversal_turns_only_the_tokens_that_count() -> None:
    x, lengths = torch.arange(8).reshape(2, 4, 1), torch.tensor([4, 2])
    assert _reversed(x, lengths).squeeze(-1).tolist() == [[3, 2, 1, 0], [5, 4, 6, 7]]
    assert _reversed(x, None).squeeze(-1).tolist() == [[3, 2, 1, 0], [7, 6, 5, 4]]


def test_the_last_tokens_are_those_that_count() -> None:
    x, like = torch.arange(8.0).reshape(2, 4, 1), torch.zeros(2, 2, 1)
    # Two tokens stand before the first that counts.
    assert _last(x, like, torch.tensor([2, 1]), "auto").squeeze(-1).tolist() == [[2, 3], [5, 6]]


def test_the_last_tokens_after_each_are_windows_row_by_row() -> None:
    x, like = torch.arange(8.0).reshape(2, 4, 1), torch.zeros(2, 2, 1)
    each = _last(x, like, None, _EACH).squeeze(-1).tolist()
    assert each == [[1, 2], [5, 6], [2, 3], [6, 7]]
    assert _last(x, like[:, :0], None, _EACH).shape == (8, 0, 1)


def test_masked_rows_are_mixed_by_themselves() -> None:
    def mix(x: torch.Tensor, S: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.cumsum(1) + S[:, None]
        return y, y.gather(1, (lengths - 1).reshape(-1, 1, 1)).squeeze(1)

    x, mask = torch.ones(2, 3, 1), torch.tensor([[True, False, True], [False, False, False]])
    y, S = _by_rows(mix, (x,), (torch.tensor([[5.0], [7.0]]),), mask, None)
    assert y.squeeze(-1).tolist() == [[6, 0, 7], [0, 0, 0]]
    assert S.flatten().tolist() == [7, 7]  # what counts no token keeps its state


def test_a_mask_and_a_pack_exclude_each_other() -> None:
    x = torch.ones(1, 2, 1)
    with pytest.raises(ValueError, match="not both"):
        _by_rows(lambda *_: (x,), (x,), (), x[..., 0] > 0, torch.tensor([0, 2]))


def test_states_of_several_lengths_are_filled_in_front() -> None:
    x, new = torch.ones(2, 1, 1), torch.full((1, 2, 1), 3.0)
    which, some = torch.tensor([1]), torch.tensor([True])
    assert _replaced(x, which, new, some).squeeze(-1).tolist() == [[0, 1], [3, 3]]


def test_one_token_runs_the_loop_and_several_run_the_operator() -> None:
    ran = []

    def run(name: str) -> Callable[..., tuple[torch.Tensor, ...]]:
        def named(*args: object) -> tuple[torch.Tensor, ...]:
            ran.append(name)
            return tuple(x.clone() for x in args if isinstance(x, torch.Tensor))

        return named

    recurrence = _recurring(run("operator"), run("gradient"), run("loop"), 2, (0,))
    for length, mode in ((1, "recurrent"), (1, "chunked"), (2, "recurrent")):
        recurrence(torch.ones(1, length), torch.ones(1), mode, 4)
    assert ran == ["loop", "operator", "operator"]


def test_one_token_under_autocast_runs_the_operator() -> None:
    recurrence = _recurring(lambda x, *_: (x + 1,), lambda *_: (), lambda x: (x,), 2, (0,))
    x = torch.ones(1, 1)
    with torch.autocast("cpu"):
        assert recurrence(x, "recurrent", 4)[0].item() == 2
    assert recurrence(x, "recurrent", 4)[0].item() == 1


@dataclass(frozen=True)
class State:
    gauge: ClassVar[str] = "S: identity"
    spec: ClassVar[str] = "abc"
    mixer: ClassVar[str] = "m"

    S: torch.Tensor
    m: torch.Tensor


def test_a_state_comes_back_from_its_dictionary() -> None:
    state = State(torch.ones(2, 3), torch.zeros(2, 1))
    again = _restored(State, _kept_by_name(state), ("S",), {"m": ("S", ())})
    assert torch.equal(again.S, state.S) and torch.equal(again.m, state.m)


def test_a_state_in_another_gauge_is_scaled_and_its_maxima_start_anew() -> None:
    kept = {
        "spec": "abc",
        "gauge": "other",
        "S": torch.ones(2, 3),
        "S_factor": torch.tensor([2, 3]),
    }
    state = _restored(State, kept, ("S",), {"m": ("S", ())})
    assert state.S.tolist() == [[2, 2, 2], [3, 3, 3]]
    assert state.m.shape == (2, 1)
    with pytest.raises(ValueError, match="give S_factor"):
        _restored(
            State, {k: x for k, x in kept.items() if k != "S_factor"}, ("S",), {"m": ("S", ())}
        )


def test_a_state_of_another_mixer_is_refused() -> None:
    with pytest.raises(ValueError, match="another mixer's"):
        _restored(State, {"spec": "def"})
