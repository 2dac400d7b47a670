"""Canonical text: parsing it gives the tree back, printing it again changes nothing."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.layer_parts import Gate, LayerParts, Norm
from dsfc.papers import FORMS, YEARS, Identifier, Letter, Paper, Register
from dsfc.source import Source
from dsfc.syntax import ast
from dsfc.syntax.format import format_expr, format_spec, number
from dsfc.syntax.parse import parse


def parsed(text):
    return parse(Source("a.dsf", text))


# Random trees: everything a text can say.

NAMES = st.sampled_from(["a", "b", "W", "eta", "W_Delta", "alpha2", "states", "sum", "i", "lambda"])
IDENTS = NAMES.map(ast.Ident)
NUMBERS = st.builds(
    lambda digits, power: Fraction(digits) * Fraction(10) ** power,
    st.integers(0, 10**9),
    st.integers(-30, 30),
)


def chain(kind, operands, operators):
    return st.lists(operands, min_size=2, max_size=4).flatmap(
        lambda parts: st.lists(
            st.sampled_from(operators), min_size=len(parts) - 1, max_size=len(parts) - 1
        ).map(lambda signs: kind(tuple(parts), tuple(signs)))
    )


def several(children):
    return st.lists(children, min_size=1, max_size=3).map(tuple)


def relations(children):
    return chain(ast.Relation, children, list(ast.CmpOp))


def larger(children):
    brackets = several(st.one_of(children, relations(children)))
    calls = st.builds(ast.Call, IDENTS, st.one_of(st.just(()), brackets), several(children))
    indices = st.builds(ast.Index, IDENTS, brackets)
    operands = st.one_of(NAMES.map(ast.Name), calls, indices)
    applied = st.builds(ast.Apply, IDENTS, operands)
    return st.one_of(
        calls,
        indices,
        applied,
        st.builds(ast.Apply, IDENTS, applied),
        st.builds(ast.Pow, children, children),
        st.builds(ast.Neg, children),
        st.lists(children, min_size=2, max_size=3).map(lambda it: ast.Dot(tuple(it))),
        st.lists(children, min_size=2, max_size=3).map(lambda it: ast.Outer(tuple(it))),
        chain(ast.Mul, children, list(ast.MulOp)),
        chain(ast.Add, children, list(ast.AddOp)),
    )


EXPRS = st.recursive(st.one_of(NUMBERS.map(ast.Num), NAMES.map(ast.Name)), larger, max_leaves=12)
CONDITIONS = st.one_of(EXPRS, relations(EXPRS))
PROVENANCE = st.one_of(
    st.none(),
    st.text(st.characters(categories=["L", "N", "P", "Zs"], exclude_characters='"'))
    .filter(str.isprintable)
    .map(ast.Provenance),
)
SHAPES = several(IDENTS)
TYPES = st.one_of(
    SHAPES.map(ast.TensorType),
    st.builds(ast.MapType, st.one_of(st.just(()), SHAPES), SHAPES, SHAPES),
)
ITEMS = st.one_of(
    several(st.builds(ast.Dim, IDENTS, st.booleans(), st.one_of(st.none(), EXPRS))).map(ast.Dims),
    st.builds(
        ast.Decl,
        st.sampled_from(ast.DeclKind),
        several(IDENTS),
        st.one_of(st.none(), TYPES),
        st.lists(st.sampled_from(ast.Flag), max_size=2).map(tuple),
        st.one_of(st.none(), st.builds(ast.Init, st.sampled_from(ast.InitKind), EXPRS)),
    ),
    st.builds(ast.Const, IDENTS, EXPRS),
    st.builds(ast.Def, IDENTS, EXPRS, PROVENANCE),
    st.builds(ast.FunDef, IDENTS, several(IDENTS), EXPRS, PROVENANCE),
    st.builds(ast.Flow, IDENTS, EXPRS, IDENTS, EXPRS, PROVENANCE),
    st.builds(ast.Use, IDENTS, several(IDENTS)),
    st.builds(ast.Claim, CONDITIONS, st.lists(CONDITIONS, max_size=2).map(tuple)),
)
NAMED = st.text(st.characters(categories=["L"]), min_size=1)
PAPERS = st.builds(
    Paper,
    several(NAMED),
    st.booleans(),
    st.sampled_from(YEARS),
    NAMED,
    st.one_of(st.none(), st.sampled_from([Identifier(r, form[1]) for r, form in FORMS.items()])),
    PROVENANCE.map(lambda it: None if it is None else it.text),
    st.lists(
        st.builds(Letter, NAMES, st.sampled_from(["x", "W_Q", r"\bar{A}", r"\alpha^{(h)}_{1, 2}"])),
        max_size=9,
        unique_by=lambda letter: letter.name,
    ).map(tuple),
)
ITEMS |= PAPERS.map(ast.Citation)
ITEMS |= (
    st.builds(LayerParts, st.sampled_from([None, *Norm]), st.sampled_from([None, *Gate]))
    .filter(lambda parts: parts.words)
    .map(ast.Layer)
)
BODIES = st.lists(ITEMS, max_size=5).map(tuple)
UNITS = st.one_of(
    st.builds(ast.MixerUnit, IDENTS, PROVENANCE, st.one_of(st.none(), IDENTS), BODIES),
    st.builds(ast.ModifierUnit, IDENTS, IDENTS, PROVENANCE, BODIES),
)


@given(st.lists(UNITS, max_size=2).map(tuple).map(ast.Spec), st.booleans())
def test_every_tree_comes_back_from_its_text(spec, ascii):
    text = format_spec(spec, ascii=ascii)
    again = parsed(text)
    assert again == spec
    assert format_spec(again, ascii=ascii) == text


@given(CONDITIONS)
def test_every_expression_comes_back_from_its_text(node):
    claim = parsed(f"mixer m {{ claim {format_expr(node)} }}").units[0].items[0]
    assert claim.relation == node


def test_the_canonical_text():
    text = (
        """
# before
mixer m "P0" extends b {   # behind the brace
  dims d,n=d/2
    param w_eta,  b:d  ~  normal( 0,.5e0)""".replace(".5", "0.5")
        + """  # behind
          W : each d : n->d
  buffer lb unit = 0
  x'=-a*x+u(*)w by zoh(1/100) "eq. 1"; f(a) = (a+b)*a^-(1/2)   # second
  # own line
  y = sum[j<=i]( q . k[ j-1 ] )
  # last
}
# end
"""
    )
    assert (
        format_spec(parsed(text))
        == """\
# before
mixer m "P0" extends b {
  # behind the brace
  dims d, n = d / 2
  param w_η, b : d ~ normal(0, 0.5)  # behind
        W      : each d : n -> d
  buffer lb unit = 0
  x' = -a * x + u ⊗ w by zoh(1/100)  "eq. 1"
  f(a) = (a + b) * a^-(1/2)  # second
  # own line
  y = sum[j ≤ i](q · k[j-1])
  # last
}

# end
"""
    )


def test_a_long_paper_takes_up_to_three_lines():
    text = (
        'mixer m { paper "A, B et al.",2023,"T", arXiv "2312.00752" "eq. 2"; paper "A",2023,"%s" }'
    )
    short, long, longer = (format_spec(parsed(text % ("T" * n))) for n in (60, 75, 120))
    first = '  paper "A, B et al.", 2023, "T", arXiv "2312.00752"  "eq. 2"\n'
    assert short.startswith("mixer m {\n" + first) and short.count("\n") == 4
    assert long == f'mixer m {{\n{first}  paper "A", 2023, "{"T" * 75}"\n}}\n'
    assert longer == f'mixer m {{\n{first}  paper "A", 2023,\n        "{"T" * 120}"\n}}\n'
    text = 'mixer m { paper "A", 2023, "%s", doi "10.1000/182" "eq. 2" }' % ("T" * 90)
    lines = ['  paper "A", 2023,', f'        "{"T" * 90}",', '        doi "10.1000/182"  "eq. 2"']
    assert format_spec(parsed(text)).split("\n")[1:4] == lines


def test_the_letters_of_a_paper_stand_below_it_as_many_on_a_line_as_it_holds():
    pairs = [(name, r"\mathbf{x}") for name in ("S", "eta", *(f"a{k}" for k in range(6)))]
    letters = ",".join(f'{name} "{symbol}"' for name, symbol in pairs)
    text = format_spec(parsed(f'mixer m {{ paper "A",2023,"T" "eq. 2",letters {letters} }}'))
    shown = [f'{name} "{symbol}"' for name, symbol in [("S", pairs[0][1]), ("η", pairs[1][1])]]
    shown += [f'{name} "{symbol}"' for name, symbol in pairs[2:]]
    assert text.split("\n")[1:-2] == [
        '  paper "A", 2023, "T"  "eq. 2",',
        f"        letters {', '.join(shown[:5])},",
        f"                {', '.join(shown[5:])}",
    ]
    assert all(len(line) <= 100 for line in text.split("\n"))


@pytest.mark.parametrize(
    "paper",
    [
        Paper((), False, 2023, "T"),
        Paper(("A, B",), False, 2023, "T"),
        Paper(("A ",), False, 2023, "T"),
        Paper(("A et al.",), False, 2023, "T"),
        Paper(("A",), False, 23, "T"),
        Paper(("A",), False, 2023, " "),
        Paper(("A",), False, 2023, '"'),
        Paper(("A",), False, 2023, "T", Identifier(Register.ARXIV, "2313.00752")),
        Paper(("A",), False, 2023, "T", letters=(Letter("S", "two words"),)),
        Paper(("A",), False, 2023, "T", letters=(Letter("S", "h"), Letter("S", "S"))),
    ],
)
def test_papers_that_no_text_can_name_are_refused(paper):
    spec = ast.Spec((ast.MixerUnit(ast.Ident("m"), None, None, (ast.Citation(paper),)),))
    with pytest.raises(ValueError):
        format_spec(spec)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(10000), "10000"),
        (Fraction(1, 50), "0.02"),
        (Fraction(15, 10**9), "15e-9"),
        (Fraction(3) * 10**70, "3000000e64"),
        (Fraction(3, 10**70), "0.000003e-64"),
    ],
)
def test_numbers_are_printed_exactly_and_shortly(value, text):
    assert number(value) == text
    assert Fraction(text) == value


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-1)])
def test_numbers_without_a_literal_are_refused(value):
    with pytest.raises(ValueError):
        number(value)


def test_trees_without_a_text_are_refused():
    with pytest.raises(ValueError):
        format_expr(ast.Apply(ast.Ident("W"), ast.Num(Fraction(1))))
    unit = ast.MixerUnit(ast.Ident("m"), ast.Provenance('a"b'), None, ())
    with pytest.raises(ValueError):
        format_spec(ast.Spec((unit,)))


def test_types_of_declarations_in_a_row_stand_below_each_other():
    text = "mixer m { param W : d -> n; long_name, b : d; state S : n; param c = 1; buffer z : d }"
    assert (
        format_spec(parsed(text))
        == """\
mixer m {
  param W            : d -> n
        long_name, b : d
  state S : n
  param c = 1
  buffer z : d
}
"""
    )


def test_one_empty_line_stays_where_there_were_some():
    text = """\


# first

# second
mixer a {

  dims d


  # own
  input u : d  # behind {

  y = u

}
mixer b { y = 1 }



# last
"""
    printed = """\
# first

# second
mixer a {
  dims d

  # own
  input u : d  # behind {

  y = u
}

mixer b {
  y = 1
}

# last
"""
    assert format_spec(parsed(text)) == printed
    assert format_spec(parsed(printed)) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a * b ⊗ c · d ⊗ -e", "(a * b) ⊗ (c · d) ⊗ -e"),
        ("q · S / q · z", "(q · S) / (q · z)"),
        ("(q · k) * (v * 2)", "q · k * (v * 2)"),
    ],
)
def test_parentheses_that_only_readers_need(text, printed):
    (claim,) = parsed(f"mixer m {{ claim {text} == 0 }}").units[0].items
    assert format_expr(claim.relation) == f"{printed} == 0"


def test_conditions_of_claims_keep_their_tokens():
    claim = "claim causal when k · k[j] == 0 for j ≤ i and 0 < a < 1"
    (item,) = parsed(f"mixer m {{ {claim} }}").units[0].items
    assert f"  {claim}\n" in format_spec(parsed(f"mixer m {{ {claim} }}"))
    assert format_expr(item.when[0]) == "k · k[j] == 0 for j ≤ i"
