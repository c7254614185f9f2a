"""Passes values of `pytest.mark.parametrize` beside `@benchmark` on to the cases' samples."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from evalsuite.plugin.marks import FIXTURE, case_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from evalsuite.core.types import Sample


def carry_parameters(items: Sequence[pytest.Item]) -> None:
    """Gives each parametrised case a sample that holds the parameters."""
    for item in items:
        case = case_of(item)
        parameters: dict[str, object] = getattr(item, "callspec").params if case is not None else {}  # noqa: B009
        own = {name: value for name, value in parameters.items() if name != FIXTURE}
        if case is not None and own:
            parameters[FIXTURE] = dataclasses.replace(case, source=with_parameters(case.sample, own))


def with_parameters(sample: Sample, parameters: Mapping[str, object]) -> Sample:
    """The sample with all parameters in its metadata, and those that are text or numbers in its tags."""
    plain = {name: str(value) for name, value in parameters.items() if isinstance(value, str | int | float)}
    return dataclasses.replace(
        sample, tags={**sample.tags, **plain}, metadata={**sample.metadata, **parameters}
    )
