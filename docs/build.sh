#!/usr/bin/env bash
# Builds these pages into docs/_build/html from the wheel, running every example, and checks all links.
# Makes .venv and installs what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/environment.sh
environment docs
export PATH="$PWD/.venv/bin:$PATH"  # the examples call dsfc

# What is described is what gets installed: it stands in front of the checkout that .venv knows.
rm -rf build/docs build/lib build/bdist.*  # what setuptools left there would be packed too
python -P -m pip install --quiet --no-deps --target build/docs .
export PYTHONPATH="$PWD/build/docs"
python -P -c 'import dsfc, sys; sys.exit("build/docs" not in dsfc.__file__)'

rm -rf docs/_build/html
python -P -m sphinx --fail-on-warning --keep-going --quiet --jobs 2 -b html docs docs/_build/html
python -P docs/links.py docs/_build/html
echo "wrote docs/_build/html/index.html"
