#!/usr/bin/env bash
# Builds these pages into docs/_build/html, running every example. Makes .venv and installs what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/environment.sh
environment docs
export PATH="$PWD/.venv/bin:$PATH"  # the examples call dsfc
python -P -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
echo "wrote docs/_build/html/index.html"
