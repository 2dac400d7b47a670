#!/usr/bin/env bash
# Measures emitted modules beside what people run today, on two threads in float32.
# Makes .venv and installs what is missing. `--quick` runs an eighth of the length a few times;
# `--only scalar` measures one row. README.md says how to read what comes out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/environment.sh
environment benchmark
exec .venv/bin/python -m benchmarks "$@"
