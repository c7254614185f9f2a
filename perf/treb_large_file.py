"""Peak memory of reading a look-alike of TReB's official test set: one JSON list with tables of half a megabyte.

python perf/treb_large_file.py [megabytes]
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from evalsuite.benchmarks.treb import TREB
from evalsuite.core.protocols import Setup


def main() -> None:
    """Writes the file, reads it and prints what that took."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "t.csv").write_text("a,b\n" + "1,2\n" * 60_000, encoding="utf-8")
        text = "|a|b|\n|-|-|\n" + "|1|2|\n" * 40_000
        file = root / "Table_Query.json"
        size = 0
        with file.open("w", encoding="utf-8") as stream:
            while size < megabytes * 1_000_000:
                raw = {"id": f"Table_Query|t|{size}", "question": "How many?", "answer": "2", "file_path": ["t.csv"]}
                written = json.dumps({**raw, "Table_markdown": [text], "Table_html": [text]})
                stream.write(("," if size else "[") + written)
                size += len(written)
            stream.write("]")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.perf_counter()
        dataset = TREB.load(Setup("gpt", data=root, modes=("pot",)))
        seconds = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(
        f"{size / 1e6:.0f} MB, {len(dataset.samples)} samples: {seconds:.1f} s, "
        f"peak {after / 1024:.0f} MiB, of which {before / 1024:.0f} MiB before reading\n"
    )


if __name__ == "__main__":
    main()
