"""What a model generates from states is what it generates without: every way of transformers."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from models import made
from runs import (
    PLAIN,
    beams_are_those_without_a_cache,
    greedy_tokens_are_those_of_the_largest_logits,
    logits,
    prompts,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture
def tokens() -> Any:
    return prompts(3, 7)


def test_cut_anywhere_a_sequence_has_the_same_logits(model: Any, tokens: Any) -> None:
    cache, rows = None, []
    for piece in tokens.split([3, 1, 2, 1], 1):
        with torch.no_grad():
            out = model(piece, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        rows.append(out.logits)
    torch.testing.assert_close(torch.cat(rows, 1), logits(model, tokens))
    assert cache.get_seq_length() == 7


def test_greedy_tokens_are_those_of_the_largest_logits(model: Any, tokens: Any) -> None:
    greedy_tokens_are_those_of_the_largest_logits(model, tokens)


@pytest.mark.parametrize("way", [{"num_beams": 3}, {"num_beams": 2, "num_return_sequences": 2}])
def test_beams_are_those_of_a_model_without_a_cache(model: Any, tokens: Any, way: dict) -> None:
    beams_are_those_without_a_cache(model, tokens, **way)


def test_samples_are_those_of_a_model_without_a_cache(model: Any, tokens: Any) -> None:
    drawn = []
    for use_cache in (True, False):
        torch.manual_seed(1)
        drawn.append(model.generate(tokens, use_cache=use_cache, do_sample=True, **PLAIN))
    assert torch.equal(*drawn)


def test_assisted_tokens_are_the_greedy_ones(model: Any, path: Path, tokens: Any) -> None:
    """A model that is always right, one that is mostly wrong, and what stood in the prompt."""
    prompt = tokens[:1].repeat(1, 2)
    wanted = model.generate(prompt, do_sample=False, **PLAIN)
    ways = ({"assistant_model": model}, {"assistant_model": made(path, seed=1)})
    for way in (*ways, {"prompt_lookup_num_tokens": 3}):
        assert torch.equal(model.generate(prompt, do_sample=False, **way, **PLAIN), wanted)


def test_left_padding_leaves_no_trace(model: Any, tokens: Any) -> None:
    mask = torch.ones_like(tokens)
    mask[0, :3], mask[1, :1] = 0, 0
    padded = logits(model, tokens, attention_mask=mask)
    generated = model.generate(tokens, attention_mask=mask, do_sample=False, **PLAIN)
    for row, left_out in enumerate((3, 1, 0)):
        alone = tokens[row : row + 1, left_out:]
        torch.testing.assert_close(padded[row : row + 1, left_out:], logits(model, alone))
        wanted = model.generate(alone, do_sample=False, **PLAIN)
        assert torch.equal(generated[row : row + 1, left_out:], wanted)


def test_a_padded_token_behind_a_cache_leaves_the_state_alone(model: Any, tokens: Any) -> None:
    with torch.no_grad():
        cache = model(tokens[:2, :4], use_cache=True).past_key_values
        mask = torch.ones(2, 5)
        mask[0, -1] = 0
        cache = model(tokens[:2, 4:5], attention_mask=mask, past_key_values=cache).past_key_values
        last = model(tokens[:2, 5:6], past_key_values=cache).logits
    without = torch.cat((tokens[:1, :4], tokens[:1, 5:6]), 1)
    torch.testing.assert_close(last[:1, -1], logits(model, without)[:, -1])
    torch.testing.assert_close(last[1:, -1], logits(model, tokens[1:2, :6])[:, -1])


def test_a_cropped_cache_is_that_of_fewer_tokens(model: Any, tokens: Any) -> None:
    """Tokens come in several pieces, of one token and with a mask too."""
    for back in (0, 1, 2, 5, 7, 8):
        _crop(model, tokens, back)


def _crop(model: Any, tokens: Any, back: int) -> None:
    with torch.no_grad():
        cache = model(tokens[:, :1], use_cache=True).past_key_values
        cache.activate_past_recording()
        mask = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 1, 1]])
        cache = model(tokens[:, 1:3], attention_mask=mask, past_key_values=cache).past_key_values
        for piece in (tokens[:, 3:6], tokens[:, 6:], tokens[:, :2]):
            cache = model(piece, past_key_values=cache).past_key_values
        cache.crop(-back)
        assert cache.get_seq_length() == 9 - back
        last = model(tokens[:, -1:], past_key_values=cache).logits
    whole = torch.cat((tokens, tokens[:, :2]), 1)[:, : 9 - back]
    seen = torch.cat((whole, tokens[:, -1:]), 1)
    mask = torch.ones_like(seen)
    mask[1, 2 : whole.shape[1]][:1] = 0
    torch.testing.assert_close(last[:, -1], logits(model, seen, attention_mask=mask)[:, -1])


def test_what_was_not_recorded_is_not_taken_back(model: Any, tokens: Any) -> None:
    with torch.no_grad():
        cache = model(tokens, use_cache=True).past_key_values
    cache.crop(0)
    for wrong in (-1, 1):
        with pytest.raises(ValueError, match="cannot take"):
            cache.crop(wrong)


def test_rows_of_a_cache_are_repeated_and_chosen(model: Any, tokens: Any) -> None:
    with torch.no_grad():
        cache = model(tokens, use_cache=True).past_key_values
        cache.batch_repeat_interleave(2)
        cache.batch_select_indices(torch.tensor([5, 0]))
        last = model(tokens[:2, :1], past_key_values=cache).logits[:, -1]
    seen = torch.cat((tokens[[2, 0]], tokens[:2, :1]), 1)
    torch.testing.assert_close(last, logits(model, seen)[:, -1])


def test_a_copy_of_a_cache_goes_its_own_way(model: Any, tokens: Any) -> None:
    with torch.no_grad():
        cache = model(tokens[:, :4], use_cache=True).past_key_values
        other = copy.deepcopy(cache)
        model(tokens[:, 4:], past_key_values=cache)
        last = model(tokens[:, 4:], past_key_values=other).logits
    torch.testing.assert_close(last, logits(model, tokens)[:, 4:])


def test_caches_of_other_models_are_refused(model: Any, tokens: Any) -> None:
    from transformers import DynamicCache

    with pytest.raises(TypeError, match="no MixerCache"):
        model(tokens, past_key_values=DynamicCache())
    with pytest.raises(ValueError, match="states are kept in a MixerCache"):
        model.generate(tokens, cache_implementation="static", **PLAIN)
