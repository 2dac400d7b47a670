"""Statements of the kernels of a matrix scan: what its features and its decay make of them."""

from __future__ import annotations

from dataclasses import dataclass

from .matrix_column import Column
from .matrix_features import MatrixFeatures

_HERE = " " * 8


@dataclass(frozen=True)
class MatrixStatements(MatrixFeatures):
    """A matrix scan as the templates of its kernels put it together, statement by statement."""

    @property
    def column(self) -> Column:
        """The column of one channel."""
        return Column(self.narrow, self.decay, self.weighted)

    @property
    def step(self) -> str:
        """Numbers of a row of the state."""
        return "(V + 1)" if self.narrow else "V"

    # --- from segment to segment -----------------------------------------------------------------

    def entering(self, ends: str) -> list[str]:
        """Statements of the state that enters a segment, from that before the first."""
        told = "tl.range(0, i_s):  # what the segments before this one made of it"
        return self._passed(told, "i_p * n_s + i", ends, "S", "z")

    @property
    def leaving(self) -> list[str]:
        """Statements of the gradient of the state that leaves a segment, from that of the last."""
        told = "tl.range(0, n_s - 1 - i_s):  # what the segments behind this one made of it"
        return self._passed(told, "i_p * n_s + n_s - 1 - i", "sums", "dS", "dz")

    def _passed(self, told: str, place: str, ends: str, state: str, column: str) -> list[str]:
        at = f"{ends} + i_e * K * {self.step}"
        kept = " * decay" if self.decay else ""
        return [
            f"    for i in {told}",
            f"        i_e = {place}",
            *["        decay = tl.load(decays + i_e)"] * self.decay,
            f"        {state} = {state}{kept} + tl.load({at} + o_s, mask=m_s, other=0)",
            *[f"        {column} = {column}{kept} + tl.load({at} + o_z, mask=m_z, other=0)"]
            * self.narrow,
        ]

    def over_span(self, name: str, token: str, indent: str) -> list[str]:
        """Statements of what passes over the start of a span: the state there, and its gradient."""
        lines = [
            f"at = (i_p * tl.cdiv(T, SPAN) + {token} // SPAN) * K * {self.step}",
            "o_e, m_e = _place(o_k, o_v, K, V, V)",
            "S = tl.load(spans + at + o_e, mask=m_e, other=0).to(tl.float32)",
            f"{name} = tl.sum(tl.sum(dS * S, 1), 0)",
        ]
        if self.narrow:
            lines += [
                "z = tl.load(spans + at + K * V + o_k, mask=o_k < K, other=0).to(tl.float32)",
                f"{name} += tl.sum(dz * z, 0)",
            ]
        return [indent + line for line in lines]

    @property
    def decays_over_end(self) -> list[str]:
        """Statements of what passes over the end of a segment."""
        if not self.decay:
            return []
        return [
            "    if i_s + 1 == n_s:",
            "        behind = tl.load(ends + i_p * n_k + i_k)  # what passes over its end",
            "    else:",
            *self.over_span("behind", "end", " " * 8),
        ]

    @property
    def decays_of_reads(self) -> list[str]:
        """Statements of the decays that what a token reads has had, and of the output's scale."""
        if not self.decay:
            return []
        scale = [f"        head = head * {self.scale('')}"] if self.scale("") else []
        return ["        _, _, head, _, through = _decays(p_g + row, m_c, H)", *scale]

    @property
    def read_back(self) -> list[str]:
        """Statements that add what a chunk reads to the gradient of the state that enters it."""
        if self.decay:
            lines = ["r_q = (r_q * head[:, None]).to(r_q.dtype)"]
        elif scale := self.scale("[:, None]"):
            lines = [f"r_q = (r_q.to(tl.float32) * {scale}).to(r_q.dtype)"]
        else:
            lines = []
        sums = [("dS", "_dot(tl.trans(r_q), r_do)")]
        sums += [("dz", "tl.sum(r_q * b_dw[:, None], 0)")] * self.narrow
        for state, added in sums:
            lines.append(
                f"{state} = {state} * through + {added}" if self.decay else f"{state} += {added}"
            )
        return [" " * 8 + line for line in lines]

    # --- what tokens have ------------------------------------------------------------------------

    @property
    def shared_token(self) -> list[str]:
        """Where queries and keys are that all heads have."""
        return [f"{_HERE}token = i_b * T + i_t"] * self.shared

    def valued(self, name: str) -> str:
        """Text of the values of a chunk, or of what has their shape."""
        if name == "v":
            return f"_loaded(p_v + row * V, {'m_t' if self.weighted else 'm_c'}, o_v, V, H * V)"
        return f"_loaded({name} + row * V, m_t, o_v, V, H * V)"

    def featured(self, x: str) -> list[str]:
        """Loads queries or keys, as products take them."""
        row, step = ("token", "K") if self.shared else ("row", "H * K")
        loaded = f"_loaded(p_{x} + {row} * K, m_t, o_k, K, {step})"
        if self.feature(x).plain:
            return [f"{_HERE}r_{x} = {loaded}"]
        return [f"{_HERE}x_{x} = {loaded}.to(tl.float32)", *self.rows(x)]

    def gradient(self, x: str) -> list[str]:
        """Stores the gradient of queries or keys."""
        plain = self.feature(x).plain
        lines = [] if plain else self.rows_back(x)
        name = f"r_d{x}" if plain else f"x_d{x}"
        return [*lines, f"{_HERE}_stored(dp_{x} + row * K, {name}, m_t, o_k, K, H * K)"]

    @property
    def weights(self) -> list[str]:
        """Loads the weights of values."""
        if not self.weighted:
            return []
        counted = f"{_HERE}b_weight = tl.where(m_c, b_weight, 0)"
        return [*self._leaves("weight"), *self.number("weight"), counted]

    def scales(self, *, loaded: bool = True) -> list[str]:
        """Loads the scales of outputs; what a running normaliser is computed of may be known."""
        if not self.scaled:
            return []
        mask = "m_c" if self.running else "m_t"
        scale = f"{_HERE}b_scale = tl.where({mask}, {self.factor or 1} / b_eta, 0)"
        return [*(self._leaves("eta") if loaded else []), *self.number("eta"), scale]

    def _leaves(self, what: str) -> list[str]:
        return [
            f"{_HERE}b_{x} = tl.load(p_{x} + row + o_t * H, mask=m_t, other=0).to(tl.float32)"
            for x in self.leaves_of(what)
        ]

    @property
    def scales_of_tokens(self) -> list[str]:
        """Loads the scales of outputs that are no function of what is read."""
        return [] if self.running else self.scales()

    @property
    def scales_of_reads(self) -> list[str]:
        """The scales of outputs that are a function of what was read."""
        return self.scales(loaded=False) if self.running else []

    def numbers_back(self, what: str) -> list[str]:
        """Stores the gradients of what the weight, or the normaliser "eta", is computed of."""
        out = []
        for x, lines in self.number_back(what):
            counted = f"{_HERE}db_{x} = tl.where(m_c, db_{x}, 0)"
            out += [*lines, *[counted] * (what == "weight")]
            out.append(f"{_HERE}tl.store(dp_{x} + (row + o_t * H) * n_k + i_k, db_{x}, mask=m_t)")
        return out

    # --- forwards --------------------------------------------------------------------------------

    @property
    def weighed(self) -> list[str]:
        """Multiplies values by their weights."""
        if not self.weighted:
            return []
        return [f"{_HERE}r_v = (r_v * b_weight[:, None]).to(r_v.dtype)", *self.column.weighed]

    @property
    def outputs_of_pairs(self) -> list[str]:
        """Reads of tokens: of their chunk, and of the state ahead of it."""
        read = "r_y = _rounded_dot(pairs, r_v) + _dot_rounded(r_q, S)"
        if not self.decay:
            return [f"{_HERE}pairs = tl.where(m, pairs, 0)", _HERE + read]
        return [
            f"{_HERE}n, r, head, tail, through = _decays(p_g + row, m_c, H)",
            f"{_HERE}pairs *= _decay_between(n, r, m, False)",
            f"{_HERE}{read} * head[:, None]",
        ]

    @property
    def scaled_output(self) -> list[str]:
        """Multiplies outputs by their scale."""
        scale = self.scale("[:, None]")
        return [f"{_HERE}r_y *= {scale}"] if scale else []

    @property
    def carried(self) -> list[str]:
        """Adds what a chunk makes to the state."""
        if self.decay:
            added = "_dot(tl.trans(r_k), (r_v * tail[:, None]).to(r_v.dtype))"
            line = f"{_HERE}S = S * through + {added}"
        else:
            line = f"{_HERE}S += _dot(tl.trans(r_k), r_v)"
        return [line, *self.column.carried]

    @property
    def no_decay_yet(self) -> list[str]:
        """Starts the decay over a segment."""
        return ["    decay = 1.0"] * self.decay

    @property
    def decays_to_end(self) -> list[str]:
        """The decays to the end of a chunk, and over the segment so far."""
        lines = "_, _, _, tail, through = _decays(p_g + row, m_c, H)", "decay *= through"
        return [_HERE + line for line in lines] if self.decay else []

    @property
    def stored_decay(self) -> list[str]:
        """Stores the decay over a segment."""
        told = "  # the same number from every program of a head"
        return [f"    tl.store(decays + i_e, decay){told}"] * self.decay

    # --- backwards -------------------------------------------------------------------------------

    def both_numbers(self, *, behind_pairs: bool) -> list[str]:
        """Loads weights and scales: where states decay, behind the products of pairs."""
        lines = [*self.weights, *self.scales()]
        return lines if self.decay == behind_pairs else []

    def numbers_of_reads(self, *, behind_pairs: bool) -> list[str]:
        """Likewise, without the scales that are a function of what is read."""
        lines = [*self.weights, *self.scales_of_tokens]
        return lines if self.decay == behind_pairs else []

    @property
    def column_gradient(self) -> list[str]:
        """The gradients of outputs of the column of one channel; of a running normaliser, made."""
        if not self.running:
            return self.column.gradient
        return [
            *self.scales(),
            f"{_HERE}# Of N / η the gradient of η is -(do · N / η) / η; what is divided by η is "
            "divided below.",
            f"{_HERE}b_deta = -tl.sum(r_do * {self.valued('p_o')}.to(tl.float32), 1)",
            *self.column_back(),
            f"{_HERE}b_dw = tl.where(m_c, b_dw, 0)",
            f"{_HERE}tl.store(d_out_w + row + o_t * H, b_dw, mask=m_t)"
            "  # the same from all programs of a head",
        ]

    @property
    def weighted_pairs(self) -> list[str]:
        """Multiplies pairs, and the decays to the end, by the weights of values."""
        line = f"{_HERE}pairs, tail = pairs * b_weight[None, :], tail * b_weight"
        return [line] * self.weighted

    def scaled_pairs(self, index: str) -> list[str]:
        """Multiplies pairs, and the decays from the start, by the scales of outputs."""
        scale = f"pairs * {self.scale(index)}, head * {self.scale('')}"
        return [f"{_HERE}pairs, head = {scale}"] if self.scale("") else []

    @property
    def pairs_of_weights(self) -> str:
        """Text of pairs of values with a weight."""
        return "pairs * b_weight[None, :]" if self.weighted else "pairs"

    @property
    def pairs_of_scales(self) -> str:
        """Text of pairs, turned, of outputs with a scale."""
        scale = self.scale("[None, :]")
        return f"pairs * {scale}" if scale else "pairs"

    @property
    def scaled_gradient(self) -> list[str]:
        """Multiplies the gradients of queries by the scales of outputs."""
        scale = self.scale("[:, None]")
        return [f"{_HERE}r_dq *= {scale}"] if scale else []

    @property
    def weighted_keys(self) -> list[str]:
        """Multiplies keys by the weights of values."""
        return [f"{_HERE}r_k = (r_k * b_weight[:, None]).to(r_k.dtype)"] * self.weighted

    @property
    def scaled_gradients_of_outputs(self) -> list[str]:
        """Multiplies the gradients of outputs by their scales."""
        scale = self.scale("[:, None]")
        return [f"{_HERE}r_do = (r_do.to(tl.float32) * {scale}).to(r_do.dtype)"] if scale else []

    @property
    def normaliser_back(self) -> list[str]:
        """Loads queries that are needed and not there, and stores gradients of normalisers."""
        scaled = self.scaled and not self.running
        loaded = not self.decay and (scaled or not self.feature("q").plain)
        queries = self.featured("q") if loaded else []
        if not scaled:
            return queries
        line = f"{_HERE}b_deta = -tl.sum(r_q * r_dq, 1) / b_eta"
        return [*queries, line, *self.numbers_back("eta")]

    @property
    def weights_back(self) -> list[str]:
        """Loads keys that are needed and not there, and stores gradients of weights."""
        loaded = not self.decay and (self.weighted or not self.feature("k").plain)
        keys = self.featured("k") if loaded else []
        if not self.weighted:
            return keys
        line = f"{_HERE}b_dweight = tl.sum(r_k * r_dk, 1)"
        return [*keys, line, *self.numbers_back("weight"), f"{_HERE}r_dk *= b_weight[:, None]"]

    @property
    def tail(self) -> str:
        """Text of the decays to the end of a chunk, of values with a weight."""
        return "(tail * b_weight)" if self.weighted else "tail"

    @property
    def values_back(self) -> list[str]:
        """Multiplies the gradients of values by their weights, 0 where a token does not count."""
        if self.weighted:
            return [f"{_HERE}r_dv *= b_weight[:, None]"]
        return [f"{_HERE}r_dv = tl.where(m_c[:, None], r_dv, 0)"]

    @property
    def decays_over_last(self) -> list[str]:
        """Stores what passes over the end of all tokens."""
        if not self.decay:
            return []
        return [
            "    if i_s + 1 == n_s:",
            f"{_HERE}dS = tl.load(d_last + start + o_s, mask=m_s, other=0).to(tl.float32)",
            f"{_HERE}over_end = tl.sum(tl.sum(dS * S, 1), 0)",
            *self.column.over_end,
            f"{_HERE}tl.store(ends + i_p * n_k + i_k, over_end)",
        ]
