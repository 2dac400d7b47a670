"""Formulas as MathML, written while the pages are built: they need no script and no network."""

from __future__ import annotations

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_OPERATOR = re.compile(r"\\operatorname\{(\w+)\}")


def _mathml(latex: str, display: str) -> str:
    """A formula, names of functions upright and in one piece."""
    return convert(_OPERATOR.sub(r"\\text{\1}", latex), display=display)


def _inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(writer: HTML5Translator, node: nodes.math_block) -> None:
    # The box scrolls where the page is too narrow for the formula.
    writer.body.append(f'<div class="formula">{_mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the renderer under the name `mathml`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
