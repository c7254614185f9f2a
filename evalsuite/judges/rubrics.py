"""`rubric`: one judge for everybody's own cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from evalsuite.core.errors import SettingsError
from evalsuite.core.keywords import generation_params
from evalsuite.judges.criteria import Likert
from evalsuite.judges.fields import as_fields
from evalsuite.judges.rubric_judge import Aggregate, Rubric
from evalsuite.judges.written_criteria import as_criteria

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.judges.criteria import Criteria


def rubric(  # noqa: PLR0913 - a judge is declared in one line, each option a keyword
    criteria: str | Sequence[str] | Mapping[str, Any] | Criteria | None,
    *,
    name: str = "rubric",
    scale: tuple[int, int] | None = None,
    anchors: Mapping[int, str] | None = None,
    steps: Sequence[str] = (),
    examples: Sequence[Mapping[str, Any]] = (),
    fields: Sequence[str] | Mapping[str, str] = (),
    model: str | Sequence[str] = (),
    samples: int = 1,
    aggregate: Aggregate = "mean",
    quorum: int | None = None,
    passes: float | None = None,
    confirm_failures: int = 0,
    attempts: int = 3,
    **params: Any,
) -> Rubric:
    """A judge with criteria of your own; it gives its reasons before its score.

    One call for each judge and sample; the reason is the score's note.

    Args:
        criteria: a question, answered by yes (1.0) or no (0.0), or on a `scale`; several questions, or questions
            with weights: a checklist, whose value is the weight of those met as a share; a decision tree of
            `{"question": ..., "yes": ..., "no": ...}` whose leaves are scores; or one of the criteria in
            `evalsuite.judges`: `YesNo`, `Likert`, `Checklist`, `Tree`, `Each`. None takes the checklist in the
            sample's metadata, under `criteria`.
        name: of the score.
        scale: lowest and highest point for a question that is not answered by yes or no.
        anchors: words for the scale's points; without `scale` they are the scale.
        steps: to go through before judging.
        examples: of judgements, each a mapping of names to texts.
        fields: what the judge sees: `input`, `answer`, `reasoning`, `target` (all references), `conversation`,
            `tools` (calls with results), `metadata.KEY`, `facts.KEY` or a bare key; a mapping names the sections.
            By default question, answer and the references that there are.
        model: the judge model, if it is not the run's; or several.
        samples: judgements of each judge, at temperature 1.
        aggregate: how several values become one: `mean`, `median`, `min`, `max` or `majority`.
        quorum: judgements that must be readable; None for more than half.
        passes: the least value that is no failure; None for the best.
        confirm_failures: votes in all where the first verdict is a failure, which stands if most of them agree;
            0 takes the first verdict as it is.
        attempts: answers asked for at most, until one can be read.
        params: generation parameters; the temperature is 0 unless given here.

    Raises:
        SettingsError: the criteria, the scale, the aggregate or a number makes no sense.
    """
    if aggregate not in get_args(Aggregate):
        raise SettingsError(
            f"a rubric's values are joined by {', '.join(get_args(Aggregate))}; got {aggregate!r}"
        )
    if samples < 1 or attempts < 1 or confirm_failures < 0:
        raise SettingsError("a rubric needs at least 1 sample and 1 attempt, and 0 or more confirmations")
    read = None if criteria is None else as_criteria(criteria, scale, anchors or {})
    if isinstance(read, Likert) and confirm_failures and passes is None:
        raise SettingsError(
            "confirm_failures needs to know what fails: give passes=, the least value that does not"
        )
    return Rubric(
        read,
        name,
        tuple(steps),
        tuple(examples),
        as_fields(fields),
        (model,) if isinstance(model, str) else tuple(model),
        samples,
        aggregate,
        quorum,
        passes,
        confirm_failures,
        attempts,
        generation_params(rubric, params),
    )
