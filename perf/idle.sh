#!/usr/bin/env bash
# What the plugin costs a session without a single case: one trivial test, with and without it.
#   PYTHON=python RUNS=15 perf/idle.sh
set -euo pipefail
: "${PYTHON:=python}" "${RUNS:=15}"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
echo 'def test_nothing(): pass' > test_nothing.py
exec "$PYTHON" - "$RUNS" <<'PY'
import statistics, subprocess, sys, time
runs = int(sys.argv[1])
def wall(*options):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start
for workers in ((), ("-n", "8")):
    pairs = [(wall(*workers), wall("-p", "evalsuite.plugin", *workers)) for _ in range(runs if not workers else 5)]
    bare, loaded = (statistics.median(column) for column in zip(*pairs))
    extra = statistics.median(b - a for a, b in pairs)
    print(f"{' '.join(workers) or 'plain'}: bare {bare:.3f} s, loaded {loaded:.3f} s, difference {extra * 1000:.0f} ms, ratio {loaded / bare:.2f}")
PY
