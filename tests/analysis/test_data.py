"""Tokens are read from files of NumPy, and from nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dsfc.analysis.data import WrongData, read_tokens
from dsfc.api.pipeline import load


def test_an_array_is_the_only_input_and_a_batch_gives_its_first_sequence(tmp_path: Path) -> None:
    values = np.arange(2 * 5 * 3.0).reshape(2, 5, 3)
    np.save(tmp_path / "x.npy", values)
    found = read_tokens(tmp_path / "x.npy", load("retnet").mixer)
    assert found.sizes == {"d": 3} and (found.inputs["u"] == values[0]).all()
    np.savez(tmp_path / "x.npz", u=values[1])
    assert (read_tokens(tmp_path / "x.npz", load("retnet").mixer).inputs["u"] == values[1]).all()


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
        ({"v": np.ones((4, 3))}, "lacks the input `u`"),
        ({"u": np.ones((4, 3, 2, 1))}, "has the shape"),
        ({"u": np.ones((1, 3))}, "2 or more"),
        ({"u": np.array([["a"], ["b"]])}, "no array of finite numbers"),
        ({"u": np.array([[1.0], [np.nan]])}, "no array of finite numbers"),
        ({"u": np.ones((4, 3)) * 1j}, "is complex"),
    ],
)
def test_other_arrays_are_refused(arrays: dict, why: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(WrongData, match=why):
        read_tokens(tmp_path / "x.npz", load("retnet").mixer)


def test_files_of_anything_else_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.npy"
    file.write_bytes(b"no array")
    with pytest.raises(WrongData, match="no file of NumPy"):
        read_tokens(file, load("retnet").mixer)
    with pytest.raises(WrongData, match="cannot be read"):
        read_tokens(tmp_path / "none.npy", load("retnet").mixer)
    np.save(file, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(WrongData, match="no file of NumPy"):
        read_tokens(file, load("retnet").mixer)
