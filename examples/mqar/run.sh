#!/usr/bin/env bash
# From two specs to two trained models: compiles, shows, verifies, trains, draws.
# Makes .venv and installs what is missing. `--quick` verifies one and trains a few steps.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=examples/mqar
. examples/harness/steps.sh

mixers=(normalized_attn linear_attn)
for mixer in "${mixers[@]}"; do
  run_dsfc show "specs/$mixer.dsf"
  run_dsfc show "specs/$mixer.dsf" --form kronecker
  run_dsfc show "specs/$mixer.dsf" --form kronecker --gauge paper
  run_dsfc compile "specs/$mixer.dsf" -o "$modules/$mixer.py"
done
verify "${mixers[@]}"

say "Training: each mixer in a model of two layers, on multi-query associative recall"
.venv/bin/python -m mqar.demo "$@"
