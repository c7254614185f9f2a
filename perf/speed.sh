#!/usr/bin/env bash
# Speed beside peers, in one sitting. Needs a folder with the fake server, measure.py and the peers' cases:
#   PERF_TOOLS=DIR PYTHON=python perf/speed.sh
# PYTHON has evalsuite installed and little else; the peers' environments are made by $PERF_TOOLS/peers/setup.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${PERF_TOOLS:?the folder with fake_server.py and measure.py}" "${PYTHON:=python}" "${RUNS:=3}" "${FAKE_PORT:=8199}"
export OPENAI_API_KEY=x FAKE_PORT
unset PYTHONDONTWRITEBYTECODE
work=$(mktemp -d)
# Its own root of temporary folders, because pytest deletes those of earlier sessions, which may take seconds.
export PYTEST_DEBUG_TEMPROOT=$(mktemp -d)
"$PYTHON" "$PERF_TOOLS/fake_server.py" "$FAKE_PORT" & server=$!
trap 'kill $server; rm -rf "$work" "$PYTEST_DEBUG_TEMPROOT"' EXIT
sleep 1
cp -r "$here/cases/." "$work"
cd "$work"
base="http://127.0.0.1:$FAKE_PORT/v1"
measure() { "$PYTHON" "$PERF_TOOLS/measure.py" "$1" "$RUNS" "$FAKE_PORT" -- "${@:2}" | grep MEDIAN; }
evalsuite() {
  measure "$1" "$PYTHON" -m pytest -q -p no:cacheprovider --model=fake "--model-base-url=$base" \
    --max-connections 100 '--gate=fake.exact_match >= 0.85' "${@:2}" .
}
evalsuite "evalsuite -n 0" -n 0
(cd "$PERF_TOOLS" && N=1000 C=100 bash peers/run.sh pydantic_evals)
evalsuite "evalsuite -n 8" -n 8
(cd "$PERF_TOOLS" && N=1000 bash peers/run.sh plain)
# The slow ones once, as each run of theirs takes minutes; none where their environments are not there.
(cd "$PERF_TOOLS" && N=1000 C=100 RUNS=1 bash peers/run.sh inspect deepeval) || true
N=10000 evalsuite "evalsuite -n 0, 10,000 cases" -n 0
