"""Texts become trees; wrong texts become located diagnostics, several in one run."""

import time
from fractions import Fraction
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.diagnostics.report import DiagnosticError
from dsfc.layer_parts import Gate, LayerParts, Norm
from dsfc.limits import DEFAULT_LIMITS, Limits
from dsfc.papers import Identifier, Letter, Paper, Register
from dsfc.source import Source
from dsfc.syntax import ast
from dsfc.syntax.ast import AddOp, CmpOp, Ident, MulOp, Name, Num
from dsfc.syntax.parse import parse

SPECS = {
    it.name: it.read_text(encoding="utf-8")
    for it in sorted(files("dsfc.specs").iterdir(), key=lambda it: it.name)
    if it.name.endswith(".dsf")
}
ONE, TWO = Num(Fraction(1)), Num(Fraction(2))
A, B, C = Name("a"), Name("b"), Name("c")


def parsed(text, **options):
    return parse(Source("a.dsf", text), **options)


def item(text):
    """The last item of a mixer that has this text as body."""
    (unit,) = parsed(f"mixer m {{\n{text}\n}}").units
    return unit.items[-1]


def value(text):
    return item(f"y = {text}").expr


def test_a_paper_is_read_whole():
    kept = 'doi "10.1162/neco.1997.9.8.1735" "eq. 2"'
    text = f'paper "Amo Alonso, De et al.", 2023,\n "T # “x”",\n {kept}'
    doi = Identifier(Register.DOI, "10.1162/neco.1997.9.8.1735")
    paper = Paper(("Amo Alonso", "De"), True, 2023, "T # “x”", doi, "eq. 2")
    found = item(text)
    assert found == ast.Citation(paper) and [word.text for word in found.words] == ["doi"]
    assert item('paper "Katsch", 2023, "T"').paper == Paper(("Katsch",), False, 2023, "T")
    assert item('paper "Katsch", 2.023e3, "T"  "§2"').paper.place == "§2"
    modifier = parsed(f"modifier m on x {{ {text}; x = 2 * x }}").units[0]
    assert ast.papers(modifier) == (paper,)


def test_a_paper_has_letters_for_names():
    found = item('paper "Gu, Dao", 2023, "T"  "eq. 2",\n letters i "t", Λ "\\bar{A}", S "h"')
    assert found.paper.letters == (Letter("i", "t"), Letter("Lambda", r"\bar{A}"), Letter("S", "h"))
    assert [word.text for word in found.words] == ["letters"]
    assert [name.span.text for name in found.named] == ["i", "Λ", "S"]
    found = item('paper "Gu", 2023, "T", doi "10.1000/182", letters S "h"')
    assert [word.text for word in found.words] == ["doi", "letters"]
    assert found.paper.place is None and found.paper.located == "Gu 2023"
    assert item('paper "Gu", 2023, "T" "§2", letters S "h"').paper.located == "Gu 2023, §2"


def test_letters_is_a_name_wherever_it_is_not_of_a_paper():
    spec = parsed("mixer letters { dims d; input u : d; letters = u; y = letters }")
    assert spec.units[0].items[2].name.text == "letters"


def test_a_layer_has_a_norm_and_a_gate():
    assert item("layer norm layer").parts == LayerParts(Norm.LAYER)
    found = item("layer gate silu, norm rms")
    assert found.parts == LayerParts(Norm.RMS, Gate.SILU)
    assert [word.text for word in found.words] == ["gate", "silu", "norm", "rms"]
    assert ast.layer_parts(parsed("mixer m { layer gate sigmoid }").units[0]).gate is Gate.SIGMOID


def test_layer_is_a_name_wherever_no_part_of_a_layer_stands_behind_it():
    spec = parsed("mixer layer { dims d; input u : d; y = u }\nmixer b extends layer { }")
    assert [unit.name.text for unit in spec.units] == ["layer", "b"]
    assert item("layer = u").name.text == "layer"
    with pytest.raises(DiagnosticError, match="behind `layer` stand `norm` and `gate`"):
        item("layer form rms")


@pytest.mark.parametrize(
    ("text", "at", "said"),
    [
        ("norm rms, form rms", "form", "a layer has no `form`; its parts are `norm` or `gate`"),
        ("gate relu", "relu", "a gate of a layer is `silu` or `sigmoid`, not `relu`"),
        ("norm rms, norm rms", "norm", "a layer has one norm, and this is another"),
    ],
)
def test_what_no_layer_has_is_told_at_its_word(text, at, said):
    with pytest.raises(DiagnosticError) as told:
        item(f"layer {text}")
    (problem,) = told.value.diagnostics
    assert problem.message == said and problem.span.text == at


@pytest.mark.parametrize(
    ("text", "at", "said"),
    [
        ('"Gu,, Dao", 2023, "T"', '"Gu,, Dao"', "family names"),
        ('"", 2023, "T"', '""', "family names"),
        ('"et al.", 2023, "T"', '"et al."', "family names"),
        ('"Gu", 23, "T"', "23", "`23` is not the year"),
        ('"Gu", 2023.5, "T"', "2023.5", "is not the year"),
        ('"Gu", 1e64, "T"', "1e64", "is not the year"),
        ('"Gu", 2023, " "', '" "', "the title is missing"),
        ('"Gu", 2023, "T", arxiv "2312.00752"', "arxiv", "did you mean `arXiv`?"),
        ('"Gu", 2023, "T", isbn "2312.00752"', "isbn", "known are `arXiv`, `doi`, `url`"),
        ('"Gu", 2023, "T", arXiv "2313.00752"', '"2313.00752"', "no identifier of arXiv"),
        ('"Gu", 2023, "T", arXiv "arXiv:2312.00752"', '"arXiv:2312.00752"', '"2312.06635"'),
        ('"Gu", 2023, "T", arXiv "２312.00752"', '"２312.00752"', "no identifier of arXiv"),
        ('"Gu", 2023, "T", doi "https://doi.org/10.1/a"', None, "no identifier of doi"),
        ('"Gu", 2023, "T", url "http://a.org"', '"http://a.org"', "no identifier of url"),
        ('"Gu", 2023, "T", url "https://a.org/ javascript:"', None, "no identifier of url"),
        ('"Gu", 2023, "T", letter S "h"', "letter", "did you mean `letters`?"),
        ('"Gu", 2023, "T", letters "h"', "letters", "`letters` keeps no papers"),
        ('"Gu", 2023, "T", letters S "h", S "S"', "S", "has a letter of this paper already"),
        ('"Gu", 2023, "T", letters η "h", eta "S"', "eta", "has a letter of this paper already"),
        ('"Gu", 2023, "T", letters S "S_t h"', '"S_t h"', "is not one symbol of LaTeX"),
        ('"Gu", 2023, "T", letters S "\\\\href{a}"', None, "is not one symbol of LaTeX"),
    ],
)
def test_a_paper_that_cannot_be_is_refused_where_it_is_wrong(text, at, said):
    (found,) = problems(f"mixer m {{\n  paper {text}\n}}")
    assert found.code == "E-PAPER" and said in str(found)
    assert at is None or found.span.text == at


def test_each_wrong_part_of_a_paper_is_told():
    assert codes('mixer m {\n  paper "", 1, "", x "y"\n}') == ["E-PAPER"] * 4


def problems(text, **options):
    with pytest.raises(DiagnosticError) as caught:
        parsed(text, **options)
    return caught.value.diagnostics


def codes(text):
    return [found.code for found in problems(text)]


class TestExpressions:
    def test_precedence(self):
        assert value("a + b * c") == ast.Add((A, ast.Mul((B, C), (MulOp.TIMES,))), (AddOp.PLUS,))
        assert value("a ⊗ b * c") == ast.Outer((A, ast.Mul((B, C), (MulOp.TIMES,))))
        assert value("a * b · c") == ast.Mul((A, ast.Dot((B, C))), (MulOp.TIMES,))
        assert value("a - b ⊗ c") == ast.Add((A, ast.Outer((B, C))), (AddOp.MINUS,))
        assert value("-a^2") == ast.Neg(ast.Pow(A, TWO))
        assert value("a^b^c") == ast.Pow(A, ast.Pow(B, C))
        assert value("2^-a") == ast.Pow(TWO, ast.Neg(A))
        assert value("W u · c") == ast.Dot((ast.Apply(Ident("W"), Name("u")), C))

    def test_chains_are_flat_and_parentheses_keep_their_grouping(self):
        signs = (AddOp.PLUS, AddOp.MINUS)
        assert value("a + b - c") == ast.Add((A, B, C), signs)
        assert value("(a + b) - c") == ast.Add((ast.Add((A, B), signs[:1]), C), signs[1:])
        assert value("a / b * c") == ast.Mul((A, B, C), (MulOp.OVER, MulOp.TIMES))
        assert value("((a))") == A

    def test_application_takes_names_calls_and_indices(self):
        call = ast.Call(Ident("tanh"), (), (ast.Apply(Ident("W_1"), Name("u")),))
        assert value("W_2 tanh(W_1 u)") == ast.Apply(Ident("W_2"), call)
        assert value("A W x[i-1]").operand.operand.name == Ident("x")

    def test_calls_and_indices(self):
        body = ast.Dot((A, ast.Index(Ident("b"), (Name("j"),))))
        until = ast.Relation((Name("j"), Name("i")), (CmpOp.LE,))
        assert value("sum[j ≤ i](a · b[j])") == ast.Call(Ident("sum"), (until,), (body,))
        between = ast.Relation((Name("j"), Name("l"), Name("i")), (CmpOp.LT, CmpOp.LE))
        assert value("prod[j < l <= i](a)").brackets == (between,)
        assert value("fir[t](a, b)") == ast.Call(Ident("fir"), (Name("t"),), (A, B))
        assert value("rename[n, m](a)").brackets == (Name("n"), Name("m"))

    def test_numbers_are_exact(self):
        assert value("0.02") == Num(Fraction(1, 50))
        assert value("1.5e-3") == Num(Fraction(3, 2000))

    def test_a_span_covers_its_node_with_its_parentheses(self):
        spec = parsed("mixer m { y = (a + b) * c }")
        product = spec.units[0].items[0].expr
        assert product.span.text == "(a + b) * c"
        assert [it.span.text for it in product.operands] == ["(a + b)", "c"]
        assert ast.children(product) == product.operands
        assert [it.id for it in ast.walk(product) if isinstance(it, Name)] == ["a", "b", "c"]


class TestItems:
    def test_a_continuation_has_the_keyword_of_the_declaration_above(self):
        unit = parsed("mixer m { param a : d\n b : n positive ~ normal(0, 1); c : d -> n }").units[
            0
        ]
        assert [it.kind for it in unit.items] == [ast.DeclKind.PARAM] * 3
        assert unit.items[1].flags == (ast.Flag.POSITIVE,)
        assert unit.items[1].init.kind is ast.InitKind.DRAW
        assert unit.items[2].type == ast.MapType((), (Ident("d"),), (Ident("n"),))

    def test_a_continuation_needs_a_declaration_directly_above(self):
        (found,) = problems("mixer m {\n param a : d\n x = a\n b : d\n}")
        assert (found.code, found.span.text) == ("E-SYNTAX", "b")
        assert "continues a declaration" in found.message

    def test_each_kind(self):
        assert item("dims d, heads h = 4") == ast.Dims(
            (ast.Dim(Ident("d")), ast.Dim(Ident("h"), True, Num(Fraction(4))))
        )
        block = ast.MapType((Ident("b"),), (Ident("c"),), (Ident("c"),))
        assert item("param W : each b : c -> c").type == block
        assert item("buffer lb unit = 0").type is None
        assert item("const P = 2") == ast.Const(Ident("P"), TWO)
        assert item('y = a "eq. 1"').provenance == ast.Provenance("eq. 1")
        assert item("f(a, b) = a").params == (Ident("a"), Ident("b"))
        assert item("use gate on q, k").targets == (Ident("q"), Ident("k"))
        flow = item("x' = a * x by zoh(b)")
        assert (flow.rule, flow.step) == (Ident("zoh"), B)
        claim = item("claim 0 < a < 1 when a == b and c > 0")
        assert claim.relation.operators == (CmpOp.LT, CmpOp.LT)
        assert len(claim.when) == 2
        claim = item("claim equivalent m when k . k[j] == 0 for j < i and c > 0")
        before = ast.Relation((Name("j"), Name("i")), (CmpOp.LT,))
        assert [part.over for part in claim.when] == [before, None]
        assert claim.when[0].operators == (CmpOp.EQ,)

    def test_units(self):
        mixer, modifier = parsed('mixer a "p" extends b { }\nmodifier m on x { x = 1 }').units
        assert (mixer.provenance.text, mixer.base, mixer.items) == ("p", Ident("b"), ())
        assert (modifier.name, modifier.target) == (Ident("m"), Ident("x"))
        assert parsed("").units == ()


class TestSpellings:
    GREEK = "mixer m {\n dims n\n param Δ : n × n\n y = sum[j ≤ i](Δ ⊗ η) · τ\n}\n"
    ASCII = "mixer m {\n dims n\n param Delta : n * n\n y = sum[j <= i](Delta (*) eta) . tau\n}\n"

    def test_greek_and_ascii_are_one_tree(self):
        assert parsed(self.GREEK) == parsed(self.ASCII)

    @pytest.mark.share(2)
    @pytest.mark.parametrize("text", [GREEK, ASCII, *SPECS.values()])
    def test_line_endings_and_a_byte_order_mark_change_nothing(self, text):
        tree = parsed(text)
        assert parsed(text.replace("\n", "\r\n")) == tree
        assert parsed("\ufeff" + text) == tree
        assert parsed("\ufeff" + text.replace("\n", "\r\n\r\n# ⊗\r\n")) == tree

    def test_a_line_may_break_after_an_operator_and_inside_brackets(self):
        assert value("a +\n b") == value("a + b")
        assert value("(a\n + b)[\ni]"[:8]) == value("(a + b)")
        assert value("f(a\n, b)") == value("f(a, b)")
        assert value("\n a") == A
        assert item("dims d,\n n") == item("dims d, n")

    def test_keywords_end_at_a_word_boundary(self):
        assert item("states = a").name == Ident("states")
        assert item("heads_ = a").name == Ident("heads_")

    def test_comments_are_kept_with_their_places(self):
        spec = parsed("# one\nmixer m { # two\n y = 1 # three\n}")
        assert [(it.text, it.own_line) for it in spec.comments] == [
            ("# one", True), ("# two", False), ("# three", False),
        ]  # fmt: skip


class TestMistakes:
    def test_three_mistakes_give_three_located_diagnostics(self):
        text = "mixer m {\n dims d\n q = 2 d\n state = 3\n k = (q\n v = q − d\n y = q\n}\n"
        found = problems(text)
        assert [(it.code, it.span.line) for it in found] == [
            ("E-SYNTAX", 3), ("E-KEYWORD", 4), ("E-SYNTAX", 5), ("E-CHAR", 6),
        ]  # fmt: skip

    def test_a_mistake_in_one_unit_does_not_hide_those_in_the_next(self):
        text = "mixr a { y = 2 q }\nmixer b extends { y = .5 }\nmixer c {\n y = q ** 2\n"
        assert [it.span.line for it in problems(text)] == [1, 1, 2, 2, 4, 5]

    def test_an_open_brace_is_shown(self):
        (found,) = problems("mixer a {\n y = q\nmixer b { y = q }")
        assert found.span.line == 3
        assert found.labels[0].span.text == "{"

    @pytest.mark.parametrize(
        ("text", "shown"),
        [("k = f(u, [1\n y = 1", "["), ("k = (u]\n y = 1", "]"), ("k = u)\n y = 1", ")")],
    )
    def test_brackets_without_partner_are_one_mistake(self, text, shown):
        (found,) = problems(f"mixer m {{\n {text}\n}}")
        assert found.span.text == shown

    @pytest.mark.parametrize(
        "word", ["state", "unit", "by", "dims", "heads", "when", "for", "mixer"]
    )
    def test_words_of_the_language_are_no_names(self, word):
        found = problems(f"mixer m {{\n dims d\n {word} = 2\n y = 1\n}}")
        assert [it.code for it in found] == ["E-KEYWORD"]
        assert found[0].nearest == f"{word}_"
        assert "E-KEYWORD" in codes(f"mixer m {{ dims d\n y = 2 * {word}\n}}")

    def test_a_wrong_character_is_read_as_its_nearest_spelling(self):
        found = problems("mixer m {\n y = a − b @ c\n ο = 1\n z = 2 a\n}")
        assert [(it.code, it.nearest) for it in found[:3]] == [
            ("E-CHAR", "-"), ("E-CHAR", None), ("E-CHAR", "o"),
        ]  # fmt: skip
        assert [it.code for it in found[3:]] == ["E-SYNTAX"]

    def test_hidden_characters_are_refused_everywhere(self):
        assert codes("# a\u202eb\nmixer m { }") == ["E-CHAR"]
        assert codes('mixer m "a\u200bb" { }') == ["E-CHAR"]
        assert parsed('# §⊗ é 日\nmixer m "§3 – é" { }').units

    def test_a_lone_carriage_return_is_no_line_ending(self):
        assert codes("mixer m { y = a\rz = b }") == ["E-CHAR"]

    @pytest.mark.parametrize("number", ["1_000", "1e3_00", "1.5e-2_", "2E+1_x"])
    def test_a_number_holds_no_underscore(self, number):
        assert codes(f"mixer m {{ y = {number} }}") == ["E-CHAR"]


class TestLimits:
    @staticmethod
    def nested(count):
        return f"mixer m {{ y = {'(' * count}x{')' * count} }}"

    def test_nesting(self):
        assert parsed(self.nested(DEFAULT_LIMITS.nesting))
        assert codes(self.nested(DEFAULT_LIMITS.nesting + 1)) == ["E-LIMIT"]

    @pytest.mark.parametrize("chain", ["-" * 200 + "x", "^".join("x" * 200), " ".join("x" * 200)])
    def test_height(self, chain):
        assert codes(f"mixer m {{ y = {chain} }}") == ["E-LIMIT"]

    def test_height_at_the_bound(self):
        assert parsed(f"mixer m {{ y = {'-' * 9}x }}", limits=Limits(depth=10))
        (found,) = problems(f"mixer m {{ y = {'-' * 10}x }}", limits=Limits(depth=10))
        assert found.code == "E-LIMIT"

    def test_sizes_of_names_and_numbers(self):
        long = "a" * DEFAULT_LIMITS.name_length
        assert parsed(f"mixer m {{ y = {long} + {'9' * 18} + 1e64 + 1e-64 }}")
        for text in (
            f"{long}a",
            "9" * 19,
            "1e65",
            "1e-65",
            "1e99999999999999999999",
            "0." + "1" * 18,
        ):
            assert codes(f"mixer m {{ y = {text} }}") == ["E-LIMIT"]

    def test_tokens_and_bytes(self):
        text = "mixer m { y = a + a }"
        assert parsed(text, limits=Limits(tokens=9, bytes=len(text)))
        for limits in (Limits(tokens=8), Limits(bytes=len(text) - 1)):
            assert [it.code for it in problems(text, limits=limits)] == ["E-LIMIT"]

    @pytest.mark.share(8)
    @pytest.mark.parametrize(
        "text",
        [
            "mixer m { y = " + "(" * 50_000 + "x" + ")" * 50_000 + "}",
            "mixer m { y = " + "(" * 30_000 + ")" * 30_000 + "}",
            "mixer m { y = " + "[" * 60_000,
            "{" * 60_000,
            "}" * 60_000,
            "mixer m { y = " + "+".join("x" * 9_900) + "}",
            "mixer m { y = " + "-" * 19_000 + "x }",
            "mixer m {" + "x = ;" * 6_000 + "}",
            "mixer " * 9_000,
            "−" * 20_000,
            '"' * 60_000,
            "#" * 60_000,
        ],
        ids=lambda text: text[:20],
    )
    def test_hostile_texts_end_as_soon_as_ordinary_ones(self, text, ordinary):
        took = []
        for _ in range(3):  # a collection of garbage may fall into one of them
            start = time.process_time()
            try:
                parsed(text)
            except DiagnosticError as error:
                assert len(error.diagnostics) <= DEFAULT_LIMITS.diagnostics
            took.append(time.process_time() - start)
        assert min(took) < 4 * ordinary


@pytest.mark.parametrize("name", SPECS)
def test_each_shipped_spec_is_one_unit_named_like_its_file(name):
    spec = parsed(SPECS[name])
    assert [unit.name.text for unit in spec.units] == [name.removesuffix(".dsf")]
    assert len(SPECS[name].splitlines()) <= 40
    assert spec.comments[0].span.start == 0


@given(
    st.sampled_from(sorted(SPECS.values())),
    st.lists(
        st.tuples(
            st.floats(0, 1),
            st.integers(0, 3),
            st.one_of(
                st.binary(max_size=2), st.sampled_from([b"(", b")", b"{", b"}", b"\n", b'"', b"="])
            ),
        ),
        max_size=4,
    ),
)
def test_damaged_specs_give_a_tree_or_diagnostics(text, damages):
    data = bytearray(text.encode())
    for where, removed, inserted in damages:
        at = int(where * len(data))
        data[at : at + removed] = inserted
    source = Source("damaged", data.decode("utf-8", "replace"))
    try:
        assert isinstance(parse(source), ast.Spec)
    except DiagnosticError as error:
        for found in error.diagnostics:
            assert found.code in ("E-SYNTAX", "E-CHAR", "E-KEYWORD", "E-LIMIT", "E-PAPER")
            assert 0 <= found.span.start <= found.span.end <= len(source.text)


@given(st.text(max_size=60))
def test_any_text_gives_a_tree_or_diagnostics(text):
    for source in (text, f"mixer m {{ {text} }}", f"mixer m {{ y = {text} }}"):
        try:
            parsed(source)
        except DiagnosticError as error:
            assert error.diagnostics
