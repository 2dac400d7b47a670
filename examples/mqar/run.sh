#!/usr/bin/env bash
# From a spec to a trained model, in about two minutes: shows, compiles, verifies, compares, trains, draws.
# Makes .venv and installs what is missing. `--full` trains the whole comparison, `--quick` verifies less and trains a few steps.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=examples/mqar
. examples/harness/steps.sh

say "specs/normalized_attn.dsf, behind the two specs that it extends"
cat specs/qkv.dsf specs/generalized_attn.dsf specs/normalized_attn.dsf

run_dsfc show specs/normalized_attn.dsf --form kronecker --gauge paper
for mixer in normalized_attn linear_attn; do
  run_dsfc compile "specs/$mixer.dsf" -o "$modules/$mixer.py"
done
verify normalized_attn
! asked --full || verify linear_attn

# Proved under conditions is exit code 6.
asked --quick || run_dsfc equiv normalized_attn s6 --conditions --timeout 60 || [ $? = 6 ]

say "Training: each mixer in a model of two layers, on multi-query associative recall"
.venv/bin/python -m mqar.demo "$@"

say "Next: source .venv/bin/activate, then dsfc list, dsfc show gla, dsfc new mine"
