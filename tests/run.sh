#!/usr/bin/env bash
# Runs the tests: `bash tests/run.sh`, or `bash tests/run.sh --tier ci` for more of them.
# Makes .venv and installs what is missing. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/environment.sh
environment test
exec .venv/bin/pytest -n auto --junit-xml=build/tests.xml "$@"
