"""The grammar is one LALR automaton without conflicts."""

import time

import pytest
from lark import Lark

from dsfc.syntax.grammar import grammar_text
from dsfc.syntax.letters import GREEK


def test_no_conflicts_and_no_colliding_terminals():
    Lark(grammar_text(), parser="lalr", lexer="basic", strict=True)


def test_letters_of_the_grammar_are_those_of_the_table():
    parser = Lark(grammar_text(), parser="lalr", lexer="basic")
    (name,) = (terminal for terminal in parser.terminals if terminal.name == "NAME")
    every = [chr(point) for point in range(0x250) if chr(point).isidentifier()]
    every += [chr(point) for point in range(0x370, 0x530)]
    import re

    legal = {char for char in every if re.fullmatch(name.pattern.to_regexp(), char)}
    assert {char for char in legal if not char.isascii()} == set(GREEK)


@pytest.mark.ci
def test_building_is_quick(ordinary):
    def built() -> float:
        start = time.process_time()
        Lark(grammar_text(), parser="lalr", lexer="basic")
        return time.process_time() - start

    assert min(built() for _ in range(3)) < ordinary  # garbage is collected in some
