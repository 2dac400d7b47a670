"""Names of emitted text: injective, never a word of the language or a module of Python."""

from __future__ import annotations

import builtins
import keyword
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.emit.names import class_name, file_name, identifier

RESERVED = frozenset({"self", "torch", "forward", "chunk", "S_bar", "ends_in_"})
WORDS = sorted({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *RESERVED})
SPELLINGS = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)
NAMES = st.one_of(
    SPELLINGS,
    st.builds(
        lambda word, tail: word + "_" * tail,
        st.sampled_from([w for w in WORDS if w[0].isalpha()]),
        st.integers(0, 3),
    ),
)


@pytest.mark.ci
@given(NAMES, NAMES)
def test_two_names_never_become_one(a: str, b: str) -> None:
    assert (identifier(a, RESERVED) == identifier(b, RESERVED)) == (a == b)


@given(NAMES)
def test_an_identifier_is_legal_and_not_reserved(name: str) -> None:
    made = identifier(name, RESERVED)
    assert made.isidentifier()
    assert not keyword.iskeyword(made)
    assert not hasattr(builtins, made)
    assert made not in RESERVED


@given(SPELLINGS)
def test_a_name_that_is_free_stays(name: str) -> None:
    if name.rstrip("_") not in {w.rstrip("_") for w in WORDS}:
        assert identifier(name, RESERVED) == name


@pytest.mark.parametrize(
    "name, made",
    [
        ("lambda", "lambda_"),
        ("lambda_", "lambda__"),
        ("sum", "sum_"),
        ("W_K", "W_K"),
        ("ends_in", "ends_in__"),
        ("ends_in_", "ends_in___"),
    ],
)
def test_examples(name: str, made: str) -> None:
    assert identifier(name, RESERVED) == made


@pytest.mark.parametrize(
    "mixer, made",
    [
        ("normalized_attn", "NormalizedAttn"),
        ("s6", "S6"),
        ("rg_lru", "RgLru"),
        ("exception", "Exception_"),
        ("none", "None_"),
        ("module", "Module_"),
        ("_", "Mixer"),
    ],
)
def test_class_names(mixer: str, made: str) -> None:
    assert class_name(mixer, frozenset({"Module"})) == made


@pytest.mark.parametrize(
    "mixer, made",
    [("s6", "s6.py"), ("torch", "torch_.py"), ("torch_", "torch__.py"), ("lambda", "lambda_.py")],
)
def test_file_names(mixer: str, made: str) -> None:
    assert file_name(mixer) == made


def test_a_file_never_hides_a_module_of_the_platform() -> None:
    names = [name for name in sys.stdlib_module_names if name[0].isalpha()]
    assert {file_name(name).removesuffix(".py") for name in names}.isdisjoint(names)


@given(NAMES, NAMES)
def test_two_mixers_never_share_a_file(a: str, b: str) -> None:
    assert (file_name(a) == file_name(b)) == (a == b)
