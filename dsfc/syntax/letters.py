"""Letters and look-alikes: the one table between what people write and ASCII names.

A Greek letter in a name stands for its ASCII spelling: `W_Δ` and `W_Delta` are one name. Letters that look
like Latin ones (`ο`, `Α`, `Β`, …) are not in the table, nor is anything beyond it, so two names that look the
same are the same.
"""

from __future__ import annotations

import unicodedata

GREEK: dict[str, str] = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "epsilon",
    "ζ": "zeta",
    "η": "eta",
    "θ": "theta",
    "ι": "iota",
    "κ": "kappa",
    "λ": "lambda",
    "μ": "mu",
    "ν": "nu",
    "ξ": "xi",
    "π": "pi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "υ": "upsilon",
    "φ": "phi",
    "χ": "chi",
    "ψ": "psi",
    "ω": "omega",
    "Γ": "Gamma",
    "Δ": "Delta",
    "Θ": "Theta",
    "Λ": "Lambda",
    "Ξ": "Xi",
    "Π": "prod",
    "Σ": "sum",
    "Φ": "Phi",
    "Ψ": "Psi",
    "Ω": "Omega",
}
"""Letter to ASCII spelling; `Σ` and `Π` are the operations."""

_UNFOLD = {name: letter for letter, name in GREEK.items() if name not in ("sum", "prod", "iota")}

_LOOK_ALIKES: dict[str, str] = {
    # Greek beyond the table
    "Α": "A", "Β": "B", "Ε": "E", "Ζ": "Z", "Η": "H", "Ι": "I", "Κ": "K", "Μ": "M", "Ν": "N", "Ο": "O",
    "Ρ": "P", "Τ": "T", "Υ": "Y", "Χ": "X", "ο": "o", "ς": "σ", "ϕ": "φ", "ϵ": "ε", "ϑ": "θ", "ϱ": "ρ",
    "ϰ": "κ", "ϖ": "π", "ϒ": "Y", "µ": "μ", "∆": "Δ", "Ω": "Ω", "∑": "Σ", "∏": "Π", "ɑ": "α", "ß": "β",
    # Cyrillic that looks Latin
    "а": "a", "е": "e", "о": "o", "р": "p", "с": "c", "у": "y", "х": "x", "і": "i", "ѕ": "s", "ј": "j",
    "А": "A", "В": "B", "Е": "E", "К": "K", "М": "M", "Н": "H", "О": "O", "Р": "P", "С": "C", "Т": "T",
    "Х": "X",
    # Signs
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "∙": "·", "•": "·", "⋅": "·", "∗": "*", "⨂": "⊗",
    "⨯": "×", "✕": "×", "⊙": "*", "∘": "*", "⊕": "+", "÷": "/", "∕": "/", "⁄": "/", "⩽": "≤", "⩾": "≥",
    "≦": "≤", "≧": "≥", "≠": "!=", "≡": "==", "→": "->", "⟶": "->", "↦": "->", "←": "=", "∼": "~",
    "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "′": "'", "’": "'", "‘": "'", "⟨": "(", "⟩": ")",
    "√": "sqrt(…)", "∞": "a number", "²": "^2", "³": "^3", "ᵀ": "·", "∈": ":", "∧": "and", "…": "a sum",
    # ASCII that has no meaning here
    "@": "·", "&": "and", "|": "abs(…)", "!": "!=", "\\": "a Greek letter", "`": "'", "%": "#", "\r": "a newline",
    "_": "a letter first", "$": "", "?": "",
}  # fmt: skip

_BLANKS = "\u00a0\u1680\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\u2028\u2029\u0085"


def fold(name: str) -> str:
    """ASCII spelling of a legal name: `W_Δ` becomes `W_Delta`."""
    return "".join(GREEK.get(char, char) for char in name)


def unfold(name: str) -> str:
    """Greek spelling of an ASCII name: parts between `_` that spell a letter, digits after them kept.

    `W_Delta` becomes `W_Δ`, `alpha2` becomes `α2`, `Deltat` stays; `fold` undoes it.
    """
    parts = []
    for part in name.split("_"):
        word = part.rstrip("0123456789")
        parts.append(_UNFOLD.get(word, word) + part[len(word) :])
    return "_".join(parts)


def legal_spelling(char: str) -> str | None:
    """What to write in the place of an illegal character, or None if nothing is close."""
    if char in _LOOK_ALIKES:
        return _LOOK_ALIKES[char] or None
    if char in _BLANKS:
        return " "
    plain = unicodedata.normalize("NFKC", char)
    if plain != char and all(is_legal(item) for item in plain):
        return plain
    base = unicodedata.normalize("NFKD", char)[:1]
    return base if base != char and is_legal(base) else None


def is_legal(char: str) -> bool:
    """Whether a character may stand in a name or a number, first or later."""
    return char in GREEK or (char.isascii() and (char.isalnum() or char == "_"))


def describe(char: str) -> str:
    """A character as messages name it: itself, its code point and its Unicode name."""
    point = f"U+{ord(char):04X}"
    name = unicodedata.name(char, "")
    if char.isascii() and char.isprintable():
        return f"`{char}`"
    shown = f"`{char}` " if char.isprintable() and not unicodedata.combining(char) else ""
    return f"{shown}({point} {name})" if name else f"{shown}({point})"
