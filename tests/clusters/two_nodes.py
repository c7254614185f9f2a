"""A program: runs a suite on a cluster of two nodes, and kills one when some cases have ended.

Arguments: how many cases that are, and the options of `evalsuite ray`. The exit status is its own.
"""

from __future__ import annotations

import re
import subprocess
import sys

from ray.cluster_utils import Cluster

# What was written before a kill can be read.
sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
enough, *options = sys.argv[1:]
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
doomed = cluster.add_node(num_cpus=2)
command = [sys.executable, "-m", "evalsuite", "ray", f"--address={cluster.address}", *options]
with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as driver:
    assert driver.stdout is not None
    for line in driver.stdout:
        sys.stdout.write(line)
        cases = re.search(r", (\d+) cases", line)
        if doomed is not None and cases and int(cases[1]) >= int(enough):
            sys.stdout.write(f"killed with {cases[1]} cases\n")
            cluster.remove_node(doomed, allow_graceful=False)
            doomed = None
# Each is killed, because one that may end by itself waits for minutes for a head that has ended before it.
for node in (doomed, cluster.head_node):
    if node is not None:
        cluster.remove_node(node, allow_graceful=False)
sys.exit(driver.returncode)
