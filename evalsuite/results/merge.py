"""Join the shards (parts) of a run into one run, as if it had never been divided."""

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from evalsuite.core.errors import RunError
from evalsuite.core.json_codec import decode_usage, encode_usage
from evalsuite.core.option_values import parse_shard
from evalsuite.core.types import Usage
from evalsuite.journal.journal import Journal
from evalsuite.results.run_folders import (
    JOURNAL,
    RECORDS,
    RunFolder,
    explain_interruption,
    export_records,
    import_records,
)
from evalsuite.results.runs import load_run

# Settings in which the shards of one run may differ.
OWN = {"shard", "run", "resume", "reports", "given", "max_connections", "max_rpm", "max_tpm", "max_cost"}


def merge_runs(folders: Sequence[RunFolder], target: Path) -> RunFolder:
    """Join shards into one run, which has all records and answers, and the settings of the first shard.

    Args:
        target: the folder of the joined run, which may already contain some of the shards' records.
    """
    infos = [folder.info() for folder in folders]
    _require_shards_of_one_run(folders, infos)
    for folder in folders:
        load_run(folder)  # Read every shard first, so that damage is found before anything is written.
    is_new = not target.exists()
    target.mkdir(parents=True, exist_ok=True)
    try:
        _join_journals(folders, target, infos)
    except RunError:
        if is_new:  # Otherwise the next attempt would be refused, because this run would exist.
            shutil.rmtree(target)
        raise
    joined = RunFolder(target)
    joined.write_info(_join_run_infos(infos))
    return joined


def _require_shards_of_one_run(folders: Sequence[RunFolder], infos: Sequence[dict[str, Any]]) -> None:
    shards = [str(info.get("settings", {}).get("shard") or "") for info in infos]
    for folder, info, shard in zip(folders, infos, shards, strict=True):
        if info.get("settings", {}).get("partial"):
            raise RunError(f"{folder.path} was run with --partial, so it is not a part of a run that gates decide")
        if not shard:
            raise RunError(f"{folder.path} is not a shard: it was run without --shard")
    parts = {parse_shard(shard)[1] for shard in shards}
    numbers = sorted(parse_shard(shard)[0] for shard in shards)
    missing = [f"{number}/{max(parts)}" for number in range(1, max(parts) + 1) if number not in numbers]
    if len(parts) == 1 and missing:
        missing_are = f"shards {', '.join(missing)} are" if len(missing) > 1 else f"shard {missing[0]} is"
        raise RunError(f"{missing_are} missing; all shards of a run are merged together")
    if len(parts) > 1 or numbers != list(range(1, max(parts) + 1)):
        raise RunError(f"these are not the shards of one run, each once: {', '.join(sorted(shards))}")
    first = _select_shared_settings(infos[0])
    for folder, info in zip(folders, infos, strict=True):
        other = _select_shared_settings(info)
        if differing := sorted(name for name in first if first[name] != other.get(name)):
            raise RunError(
                f"{folder.path} was run with another {', '.join(differing)} than {folders[0].path}; shards of one "
                "run differ in --shard alone"
            )
    _require_same_samples(folders, infos)


def _require_same_samples(folders: Sequence[RunFolder], infos: Sequence[dict[str, Any]]) -> None:
    """Refuse shards that divided different samples, because some samples would then be in no shard.

    An interrupted shard may not have collected all benchmarks; the joined run says that it was interrupted.
    """
    finished = [(folder, info) for folder, info in zip(folders, infos, strict=True) if not explain_interruption(info)]
    counted = [
        (folder, {name: (entry["samples"], entry["of"]) for name, entry in info.get("collected", {}).items()})
        for folder, info in finished
    ]
    for folder, counts in counted[1:]:
        first, expected = counted[0]
        if differing := sorted(name for name in expected | counts if expected.get(name) != counts.get(name)):
            raise RunError(
                f"{folder.path} divided other samples of {', '.join(differing)} than {first.path}; shards of one run "
                "divide the same samples"
            )


def _select_shared_settings(info: dict[str, Any]) -> dict[str, Any]:
    """Select the settings that all shards of a run must share, with the model and the selection of cases."""
    settings = {name: value for name, value in info["settings"].items() if name not in OWN}
    return settings | {"model": info["model"], "selection": info.get("selection")}


def _join_run_infos(infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
    stopped = [f"shard {info['settings']['shard']}: {why}" for info in infos if (why := explain_interruption(info))]
    usage = [decode_usage(info["usage"]) for info in infos if info.get("usage")]
    collected: dict[str, dict[str, int | None]] = {}
    for info in infos:
        for name, entry in info.get("collected", {}).items():
            # Add up the cases of all shards, but not the samples, because all shards drew from the same samples.
            sums = collected.setdefault(name, {**entry, "cases": 0, "selected": 0})
            sums |= {part: (sums[part] or 0) + entry[part] for part in ("cases", "selected")}
    return {
        **infos[0],
        "settings": infos[0]["settings"] | {"shard": None},
        "started": min(info["started"] for info in infos),
        "seconds": max(info.get("seconds", 0.0) for info in infos),
        "stopped": "; ".join(stopped) or None,
        "fault": "; ".join(str(info["fault"]) for info in infos if info.get("fault")) or None,
        "metrics": {name: declared for info in infos for name, declared in info.get("metrics", {}).items()},
        "usage": encode_usage(sum(usage, Usage())),
        "collected": collected,
        "other_failures": sum(info.get("other_failures", 0) for info in infos),
    }


def _join_journals(folders: Sequence[RunFolder], target: Path, infos: Sequence[dict[str, Any]]) -> None:
    started = [info["started"] for info in infos]
    with closing(Journal(target / JOURNAL)) as journal:
        journal.begin_session(min(started), f"evalsuite runs merge {' '.join(folder.name for folder in folders)}")
        for folder in folders:
            if (folder.path / JOURNAL).is_file():
                journal.answers.copy_answers_from(folder.path / JOURNAL)
            import_records(journal, folder.path / RECORDS)
        journal.end_session(max(started), None)
        export_records(journal, target)
