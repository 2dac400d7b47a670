"""`dsfc report` and `dsfc compare`: files, options, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")


@pytest.mark.full
def test_a_report_is_written_once(run) -> None:
    assert "written: retnet.html" in run("report", "retnet", "--tokens", 4, "--size", "d=8").output
    page = Path("retnet.html").read_text(encoding="utf-8")
    assert "4 tokens, d = 8, h = 4" in page
    again = run("report", "retnet", "--tokens", 4)
    assert again.exit_code == 1 and "--force replaces it" in again.stderr


@pytest.mark.ci
def test_a_file_is_replaced_by_force(run) -> None:
    Path("retnet.html").write_text("old", encoding="utf-8")
    assert run("report", "retnet", "--tokens", 4, "--force").exit_code == 0
    assert "<!doctype html>" in Path("retnet.html").read_text(encoding="utf-8")


@pytest.mark.full
def test_tokens_of_a_file_are_those_analysed(run) -> None:
    np.save("x.npy", np.zeros((2, 5, 8)))
    assert run("report", "retnet", "--data", "x.npy", "-o", "out/").exit_code == 0
    page = Path("out/retnet.html").read_text(encoding="utf-8")
    assert "5 tokens, d = 8" in page and "Tokens are the first 5 of x.npy" in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--data", "none.npy"), "E-REPORT"),
        (("--size", "d=3"), "E-DIM"),
        (("--size", "d"), "--size wants"),
        (("mine.py",), "a MODULE goes with --weights"),
        (("--atlas", "none.json"), "cannot be read"),
        (("--tokens", "1"), "--tokens"),
    ],
)
def test_wrong_options_write_nothing(run, words: tuple[str, ...], said: str) -> None:
    result = run("report", "retnet", *words)
    assert result.exit_code in (1, 2) and said in result.stderr
    assert not list(Path().glob("*.html"))


def test_data_of_other_sizes_than_those_given_are_refused(run) -> None:
    np.save("x.npy", np.zeros((5, 8)))
    result = run("report", "retnet", "--data", "x.npy", "--size", "d=16")
    assert result.exit_code == 1 and "the data have d = 8, and d = 16 was given" in result.stderr


@pytest.mark.ci
@pytest.mark.parametrize(
    "missing", ["matplotlib", pytest.param("latex2mathml", marks=pytest.mark.ci)]
)
def test_a_library_that_is_not_installed_is_named(start, missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from dsfc.cli import main\nsys.argv[1:] = ['report', 'gla']\nmain()"
    )
    result = start(code=code)
    assert result.returncode == 1
    assert "E-REPORT" in result.stderr and missing in result.stderr
    assert "pip install 'dsfc[report]'" in result.stderr


@pytest.mark.ci
def test_help_and_show_import_no_library_for_charts(start) -> None:
    code = (
        "import sys\nfrom dsfc.cli import commands\nfrom click.testing import CliRunner\n"
        "for words in (['--help'], ['report', '--help'], ['show', 'gla']):\n"
        "    CliRunner().invoke(commands, words)\n"
        "print([m for m in ('matplotlib', 'latex2mathml', 'dsfc.analysis') if m in sys.modules])"
    )
    assert start(code=code).stdout.strip() == "[]"


@pytest.mark.full
def test_an_atlas_gives_statements_about_a_mixer(run) -> None:
    Path("atlas.json").write_text(
        '{"format": "dsfc-atlas/2", "pairs": ['
        '{"a": "retnet", "b": "gla", "verdict": "proved", "statement": "SUB",'
        ' "conditions": ["W_1 == 0"], "directed": true, "sizes": {}},'
        '{"a": "x", "b": "gla", "verdict": "proved", "statement": "EQ", "conditions": [],'
        ' "directed": false, "sizes": {}}]}',
        encoding="utf-8",
    )
    run("report", "retnet", "--tokens", 3, "--size", "d=4", "--atlas", "atlas.json")
    page = Path("retnet.html").read_text(encoding="utf-8")
    assert "retnet ⊆ gla  where W_1 == 0" in page and "x = gla" not in page
    Path("atlas.json").write_text("[]", encoding="utf-8")
    result = run("report", "retnet", "--atlas", "atlas.json", "-o", "b.html")
    assert result.exit_code == 1 and "is no atlas" in result.stderr


@pytest.mark.full
def test_trained_weights_are_those_of_the_module(run) -> None:
    torch = pytest.importorskip("torch")
    import dsfc

    module = dsfc.import_module(dsfc.compile("gla"))
    layer = module.Gla(d=8, h=2)
    with torch.no_grad():
        layer.b_alpha.fill_(-40.0)
    torch.save(layer.state_dict(), "w.pt")
    result = run("report", "gla", "gla.py", "--weights", "w.pt", "--tokens", 4, "-o", "r.html")
    assert result.exit_code == 0
    page = Path("r.html").read_text(encoding="utf-8")
    assert "Trained parameters are those of w.pt" in page and "h = 2" in page
    torch.save({"W_1": torch.zeros(1)}, "w.pt")
    wrong = run("report", "gla", "--weights", "w.pt", "-o", "s.html")
    assert wrong.exit_code == 1 and "E-REPORT" in wrong.stderr and not Path("s.html").exists()


@pytest.mark.full
def test_a_comparison_has_each_mixer_and_needs_two(run) -> None:
    result = run("compare", "retnet", "rg_lru", "--tokens", 4, "--size", "d=8")
    assert result.exit_code == 0
    page = Path("compare.html").read_text(encoding="utf-8")
    assert "<title>retnet and rg_lru</title>" in page and "--count: 2" in page


def test_a_comparison_of_one_is_refused(run) -> None:
    assert "two SPECs or more" in run("compare", "retnet").stderr
    assert "no mixer has an axis x" in run("compare", "retnet", "gla", "--size", "x=2").stderr
