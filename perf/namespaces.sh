#!/usr/bin/env bash
# Do workers on other hosts reach the model? Two hosts are made of network namespaces with addresses of their
# own; a third, which runs pytest, is the only one that the model (a function there) can be asked in.
# Shows: a plain socket is refused, works where it is allowed, and works without permission through a tunnel
# that ends on loopback. Needs root and iproute2; says so and does nothing where they are missing.
#   PYTHON=python perf/namespaces.sh
set -euo pipefail
: "${PYTHON:=python}"
if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null; then
  echo "skipped: network namespaces need root and iproute2"
  exit 0
fi
id=evs$$
work=$(mktemp -d)
pids=()
cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for name in "$id" "$id-1" "$id-2"; do ip netns del "$name" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
if ! ip netns add "$id" 2>/dev/null; then
  echo "skipped: no network namespace may be made here"
  exit 0
fi
ip -n "$id" link set lo up

suite() { # a checkout of the suite, one a host
  mkdir -p "$1"
  echo 'pytest_plugins = ["evalsuite.plugin"]' > "$1/conftest.py"
  cat > "$1/test_hosts.py" <<'PY'
import socket, subprocess
from evalsuite import Sample, benchmark, exact_match, generate

def host(sample, transcript):
    shown = subprocess.run(["ip", "-br", "-4", "address"], capture_output=True, text=True).stdout
    return {"first": float("10.99.1.2" in shown), "second": float("10.99.2.2" in shown)}

@benchmark("hosts", [Sample(id=str(n), input=str(n), target=str(n)) for n in range(40)], solver=generate(),
           scorers=[exact_match(), host])
def test_hosts(scores):
    assert scores["exact_match"] == 1.0
    assert scores["first"] + scores["second"] == 1.0  # scored on one of the other hosts, never here
PY
}

suite "$work/here"
echo 'def echo(messages): return messages[-1]["content"]' > "$work/here/app.py" # the model is nowhere else
for n in 1 2; do
  suite "$work/host$n"
  ip netns add "$id-$n"
  ip link add "e$$-$n" netns "$id" type veth peer name "e$$-p$n" netns "$id-$n"
  ip -n "$id" address add "10.99.$n.1/24" dev "e$$-$n"
  ip -n "$id" link set "e$$-$n" up
  ip -n "$id-$n" address add "10.99.$n.2/24" dev "e$$-p$n"
  ip -n "$id-$n" link set "e$$-p$n" up
  ip -n "$id-$n" link set lo up
  (cd "$work/host$n" && exec ip netns exec "$id-$n" \
    "$PYTHON" -m execnet.script.socketserver "10.99.$n.2:8888" >"$work/host$n.log" 2>&1) & pids+=($!)
done
# What `ssh -L` does, without its encryption: loopback here, forwarded there.
cat > "$work/forward.py" <<'PY'
import asyncio, sys

async def pump(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()

async def main(port, host):
    async def serve(reader, writer):
        other, back = await asyncio.open_connection(host, 8888)
        await asyncio.gather(pump(reader, back), pump(other, writer), return_exceptions=True)
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    await server.serve_forever()

asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
PY
for n in 1 2; do
  ip netns exec "$id" "$PYTHON" "$work/forward.py" "700$n" "10.99.$n.2" & pids+=($!)
done
sleep 2

run() { # run NAME HOST1 HOST2 OPTION...
  local name=$1 first=$2 second=$3
  shift 3
  (cd "$work/here" && ip netns exec "$id" "$PYTHON" -m pytest -q -p no:cacheprovider -d \
    --tx "socket=$first//chdir=$work/host1" --tx "socket=$second//chdir=$work/host2" \
    --model=function:app:echo --run="$name" "$@" > "$work/$name.log" 2>&1)
}
shows() { grep -hE "passed|ERROR|failed" "$work/$1.log" | cut -c1-150; }

if run refused 10.99.1.2:8888 10.99.2.2:8888; then
  echo "WRONG: a plain socket was not refused"
  exit 1
fi
echo "plain:    $(shows refused)"
for n in 1 2; do
  ! grep -q "got new connection" "$work/host$n.log" || { echo "WRONG: host $n was connected to"; exit 1; }
done
run allowed 10.99.1.2:8888 10.99.2.2:8888 -o evalsuite_allow_plain_workers=true || { cat "$work/allowed.log"; exit 1; }
echo "allowed:  $(shows allowed)"
run tunnel 127.0.0.1:7001 127.0.0.1:7002 || { cat "$work/tunnel.log"; exit 1; }
echo "tunnel:   $(shows tunnel)"
"$PYTHON" - "$work/here/reports" <<'PY'
import json, pathlib, sys

for name in ("allowed", "tunnel"):
    lines = (pathlib.Path(sys.argv[1]) / name / "records.jsonl").read_text().splitlines()
    scores = [json.loads(line)["scores"] for line in lines]
    first, second = (int(sum(one[host] for one in scores)) for host in ("first", "second"))
    print(f"{name}: {first} cases on 10.99.1.2, {second} on 10.99.2.2")
    assert first and second and first + second == 40
PY
