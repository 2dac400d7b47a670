"""Names of a kernel as C has them: none of C's own, and no two of them one."""

from __future__ import annotations

from dsfc.backends.c.reserved_names import safe_names


def test_two_names_never_become_one() -> None:
    safe = safe_names()
    names = ("at_a_b", "at_a__b", "at_a___b", "do", "do_", "q")
    assert len({safe(n) for n in names}) == len(names)


def test_a_name_stays_the_same_throughout_a_kernel() -> None:
    safe = safe_names()
    assert [safe("at_a__b"), safe("at_a_b"), safe("at_a__b")][0::2] == [safe("at_a__b")] * 2


def test_words_of_c_and_of_the_header_are_not_names() -> None:
    assert not {safe_names()(n) for n in ("do", "dot", "slot_3", "i_t")} & {
        "do",
        "dot",
        "slot_3",
        "i_t",
    }
