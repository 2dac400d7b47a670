"""Codes of the text itself: characters, words, grammar, bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsfc.diagnostics.report import Diagnostic, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxProblem(Diagnostic):
    """The text does not follow the grammar at this place.

    The message names the mistake where it is a known one (a product without `*`, an operator at the
    start of a line, two `=`), and otherwise says what may stand here. Reading goes on at the next
    definition, so one run reports several.

    ```dsf wrong
    mixer product {
      dims d
      input u, w : d
      y = (u + w) u
    }
    ```

    A parenthesis cannot be applied. A product is written with its sign:

    ```dsf right
    mixer product {
      dims d
      input u, w : d
      y = (u + w) * u
    }
    ```
    """

    code: ClassVar[str] = "E-SYNTAX"
    stage: ClassVar[Stage] = Stage.PARSE
    template: ClassVar[str] = "{problem}"
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Character(Diagnostic):
    """A character that the language does not use.

    Outside strings and comments a spec is written in ASCII, the Greek letters that cannot be
    mistaken for Latin ones, and `⊗ · × ≤ ≥`. Look-alikes are refused, since two names that look the
    same must be the same; the message gives the legal spelling. In strings and comments only
    characters that cannot be seen are refused.

    ```dsf wrong
    mixer difference {
      dims d
      input u, w : d
      y = u − w
    }
    ```

    That is the typographic minus sign. The language's is the one of the keyboard:

    ```dsf right
    mixer difference {
      dims d
      input u, w : d
      y = u - w
    }
    ```
    """

    code: ClassVar[str] = "E-CHAR"
    stage: ClassVar[Stage] = Stage.PARSE
    template: ClassVar[str] = "{character} cannot be used here{instead}"
    nearest_phrase: ClassVar[str] = "; write `{}`"
    character: str
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyword(Diagnostic):
    """A word of the language is used as a name.

    Reserved are `mixer modifier extends dims heads each input param buffer state abstract const by
    use on claim when and paper complex positive nonneg unit nonzero backward`.

    ```dsf wrong
    mixer reserved {
      dims d
      input u : d
      state = 2 * u
      y = state
    }
    ```

    Any other name will do:

    ```dsf right
    mixer reserved {
      dims d
      input u : d
      state_ = 2 * u
      y = state_
    }
    ```
    """

    code: ClassVar[str] = "E-KEYWORD"
    stage: ClassVar[Stage] = Stage.PARSE
    template: ClassVar[str] = "`{word}` is a word of the language and cannot be a name"
    nearest_phrase: ClassVar[str] = "; rename it, for example to `{}`"
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit(Diagnostic):
    """The spec is larger than the compiler promises to handle in bounded time and memory.

    `dsfc.limits.Limits` lists all bounds, far above what a mixer needs; a caller from Python may
    pass other ones. *time* is that of the processor. *time by the clock* says that the work waited
    for most of a minute, as on a machine that is busy with other programs: the spec may be right.

    ```dsf wrong
    mixer large {
      dims d
      input u : d
      y = 12345678901234567890 * u
    }
    ```

    A number has at most 18 digits; larger ones are powers of ten:

    ```dsf right
    mixer large {
      dims d
      input u : d
      y = 1.2345678901e19 * u
    }
    ```
    """

    code: ClassVar[str] = "E-LIMIT"
    stage: ClassVar[Stage] = Stage.PARSE
    template: ClassVar[str] = "{what}: {size}, at most {bound} allowed"
    what: str
    size: str
    bound: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BadPaper(Diagnostic):
    """A `paper` has an author, a year, a title, an identifier or a letter that no paper can have.

    Authors are family names with commas between them, `et al.` behind the last where there are
    more. An identifier is one of arXiv, a DOI, or the address of a page; it is checked by its form.
    Behind `letters` stand names of the spec, each once with the symbol that the paper has for it.

    ```dsf wrong
    mixer mine {
      paper "Gu, Dao", 2023, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces",
        arXiv "2312.752"
      dims d
      input u : d
      y = 2 * u
    }
    ```

    Behind year and month arXiv has four digits, or five since 2015:

    ```dsf right
    mixer mine {
      paper "Gu, Dao", 2023, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces",
        arXiv "2312.00752"
      dims d
      input u : d
      y = 2 * u
    }
    ```
    """

    code: ClassVar[str] = "E-PAPER"
    stage: ClassVar[Stage] = Stage.PARSE
    template: ClassVar[str] = "{problem}"
    problem: str
