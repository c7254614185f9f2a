"""A thousand answers of a model, whose programs must be found as before.

`answers_of_models.jsonl.xz` holds answers of SmolLM2-135M-Instruct to questions about tables and requests for functions
at temperatures from 0.2 to 1.3, with the form and the digest of the program that was found in each.
"""

from __future__ import annotations

import ast
import hashlib
import json
import lzma
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalsuite.solvers.program_text import find_program

ANSWERS: list[dict[str, Any]] = [
    json.loads(line)
    for line in lzma.decompress(Path(__file__).with_name("answers_of_models.jsonl.xz").read_bytes()).splitlines()
]
MANY = 1000
BEFORE_PEP_701 = {362: "355ad6984511"} if sys.version_info < (3, 12) else {}
"""Digests where an earlier Python finds another program, because `f"{*item}"` is a syntax error before PEP 701."""
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_program_of_each_answer_is_found_as_before() -> None:
    assert len(ANSWERS) >= MANY
    changed = []
    for number, known in enumerate(ANSWERS):
        found = find_program(known["answer"])
        code = found and hashlib.sha256(found.code.encode()).hexdigest()[:12]
        if [found and found.form, code] != [known["form"], BEFORE_PEP_701.get(number, known["code"])]:
            changed.append((number, found))
    assert changed == []


def test_the_only_block_of_an_answer_is_its_program_if_it_prints() -> None:
    checked = 0
    for known in ANSWERS:
        blocks = BLOCK.findall(known["answer"])
        if len(blocks) == 1 and known["answer"].count("```") == 2 and "print(" in blocks[0]:
            with suppress(SyntaxError):
                ast.parse(blocks[0])
                found = find_program(known["answer"])
                assert found is not None
                assert found.code == blocks[0]
                checked += 1
    assert checked > MANY / 20
