"""What a session will run, sent before anything is asked, so that a case is known even if its worker dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.plugin.marks import case_of
from evalsuite.plugin.session.process_state import PROCESS

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from evalsuite.core.settings import Settings
    from evalsuite.journal.planned import PlannedCase


def note_deselected(items: Iterable[pytest.Item]) -> None:
    """Remembers cases of the suite that a resumed run leaves out, since their earlier records still count."""
    for item in items:
        process = item.config.stash.get(PROCESS, None)
        if process is not None and process.settings.resume and case_of(item) is not None:
            process.deselected.append(item)


def plan_of(session: pytest.Session) -> list[PlannedCase]:
    """The cases that this process has collected."""
    process = session.config.stash[PROCESS]
    settings, model = process.settings, process.model_name or ""
    rows = [_planned(item, settings, model, selected=True) for item in session.items]
    rows += [_planned(item, settings, model, selected=False) for item in process.deselected]
    return [row for row in rows if row is not None]


def _planned(item: pytest.Item, settings: Settings, model: str, *, selected: bool) -> PlannedCase | None:
    from evalsuite.engine.fingerprints import planned_fingerprints
    from evalsuite.journal.planned import PlannedCase

    case = case_of(item)
    if case is None:
        return None
    bound, sample = case.bound, case.sample
    return PlannedCase(
        item.nodeid,
        bound.name,
        sample.id,
        case.epoch,
        dict(sample.tags),
        bound.dataset.source,
        bound.place,
        selected,
        planned_fingerprints(case, settings, model),
        case.beyond,
    )


def send_plan(session: pytest.Session) -> None:
    """On the worker that was asked to: sends its cases to the controlling process, before any of them begins."""
    workerinput = getattr(session.config, "workerinput", {})
    if workerinput.get("evalsuite", {}).get("plan"):
        from evalsuite.core.json_codec import dumps
        from evalsuite.journal.planned import encode_plan

        plan = plan_of(session)
        if plan:
            workerinput["evalsuite_channel"].send(PLAN + dumps(encode_plan(plan)))


PLAN = "plan "
"""How the message with a plan begins; all others are JSON objects."""
