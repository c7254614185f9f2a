#!/usr/bin/env bash
# A server that allows 50 requests a second: how much of it is used, and how many requests are refused?
#   PERF_TOOLS=DIR PYTHON=python perf/rate.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${PERF_TOOLS:?the folder with fake_server.py and measure.py}" "${PYTHON:=python}" "${FAKE_PORT:=8198}" "${RPS:=50}"
export OPENAI_API_KEY=x
work=$(mktemp -d)
"$PYTHON" "$PERF_TOOLS/fake_server.py" "$FAKE_PORT" --rps "$RPS" & server=$!
trap 'kill $server; rm -rf "$work"' EXIT
sleep 1
cp -r "$here/cases/." "$work"
cd "$work"
for n in 0 8; do
  "$PYTHON" "$PERF_TOOLS/measure.py" "-n $n" 1 "$FAKE_PORT" -- "$PYTHON" -m pytest -q -p no:cacheprovider \
    --model=fake "--model-base-url=http://127.0.0.1:$FAKE_PORT/v1" --max-connections 100 -n "$n" . | grep MEDIAN
done
