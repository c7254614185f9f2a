"""Judges as scorers: each declared in one line where a case is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from evalsuite.core.errors import SettingsError
from evalsuite.core.keywords import generation_params
from evalsuite.judges.comparisons import ChoiceForm, GradedChoice, PairedScores
from evalsuite.judges.forms import QUALITY, Aspect, ScoresForm
from evalsuite.judges.g_eval import STARS, Weighted
from evalsuite.judges.judge_scorer import JudgeScorer
from evalsuite.judges.panels import Panel
from evalsuite.judges.repeated_judge import Sampled
from evalsuite.judges.roles import debaters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalsuite.judges.forms import Form
    from evalsuite.judges.panel_rules import Strategy
    from evalsuite.judges.roles import DebaterRole

DecisionRule = Literal["vote", "scores"]
Levels = Literal[3, 5]
CHOICES_BY_LEVELS: Mapping[Levels, type[ChoiceForm | GradedChoice]] = {3: ChoiceForm, 5: GradedChoice}


def single(
    aspects: Sequence[str | Aspect] = (),
    *,
    attempts: int = 3,
    model: str = "",
    **params: Any,
) -> JudgeScorer:
    """One judge scores the answer: one call.

    Args:
        aspects: what to score, one score each; a bare name is scored from 1 to 10. None at all means one
            score `quality`.
        attempts: answers asked for at most, until one can be parsed.
        model: the judge model, if it is not the run's.
        params: generation parameters; the temperature is 0 unless given here, and None is the server's own.

    Raises:
        SettingsError: an aspect is named twice, or its scale is empty.
    """
    checked = _with_temperature(0.0, single, params)
    judge = Sampled(ScoresForm(_aspects(aspects)), attempts=attempts, params=checked)
    return JudgeScorer(judge, model=model)


def pairwise(
    rival: str = "target",
    *,
    levels: Levels = 3,
    samples: int = 1,
    swap: bool = True,
    attempts: int = 3,
    model: str = "",
    quorum: int | None = None,
    **params: Any,
) -> JudgeScorer:
    """One judge says which of two answers is better: two calls, one in each order.

    With three levels, the score `preference` is 1.0 where the answer under test wins by a majority over both
    orders, 0.0 where the rival does, and 0.5 otherwise. With five, a verdict is worth 1.0 (much better), 0.75
    (better), 0.5 (a tie), 0.25 or 0.0, and the score is the mean.

    Args:
        rival: key of the sample's metadata with the answer to compare with; `target` for the sample's
            target where the metadata has no such key.
        levels: 3, or 5 for a verdict that also says by how much.
        samples: judgements in each order; more than one are asked for at temperature 1.
        swap: whether both orders are asked; without it the answer under test always stands first.
        attempts: see `single`.
        model: see `single`.
        quorum: judgements that must be readable in each order; None for more than half.
        params: see `single`.

    Raises:
        SettingsError: there are no such levels, or fewer than 1 sample.
    """
    if levels not in CHOICES_BY_LEVELS:
        raise SettingsError(f"a comparison has 3 levels or 5; got {levels!r}")
    checked = _with_temperature(1.0 if samples > 1 else 0.0, pairwise, params)
    form: Form = CHOICES_BY_LEVELS[levels]()
    judge = Sampled(form, samples, swap=swap, attempts=attempts, params=checked, quorum=quorum)
    return JudgeScorer(judge, rival, model=model)


def multiple_evidence(
    aspects: Sequence[str | Aspect] = (),
    *,
    samples: int = 3,
    rival: str | None = None,
    swap: bool = True,
    attempts: int = 3,
    model: str = "",
    quorum: int | None = None,
    **params: Any,
) -> JudgeScorer:
    """One judge gives reasons, then scores, several times; scores are averaged (FairEval's MEC and BPC).

    `samples` calls; twice as many with a rival, in both orders.

    Args:
        aspects: see `single`; with a rival at most one, on which both answers are scored.
        samples: judgements in each order, at temperature 1 unless `params` say otherwise.
        rival: see `pairwise`; None scores the answer alone.
        swap: see `pairwise`.
        attempts: see `single`.
        model: see `single`.
        quorum: judgements that must be readable in each order; None for more than half.
        params: see `single`.
    """
    checked = _with_temperature(1.0, multiple_evidence, params)
    judge = Sampled(_form(aspects, rival, "scores"), samples, True, swap, attempts, checked, quorum)
    return JudgeScorer(judge, rival, model=model)


def weighted(
    aspects: Sequence[str | Aspect] = (),
    *,
    samples: int = 20,
    rival: str | None = None,
    attempts: int = 3,
    model: str = "",
    **params: Any,
) -> JudgeScorer:
    """One judge scores each aspect alone; the score is its expected value (G-Eval).

    One call for each aspect and answer where the backend gives log-probabilities, else `samples` more;
    the fact `weights` says which.

    Args:
        aspects: see `single`, but a bare name is scored from 1 to 5, and scales have one digit.
        samples: judgements where there are no log-probabilities.
        rival: see `pairwise`; None scores the answer alone. Of two answers, each is scored by itself.
        attempts: see `single`.
        model: see `single`.
        params: see `single`.
    """
    wanted = _aspects(aspects, STARS)
    _one_aspect(wanted, rival)
    judge = Weighted(wanted, samples, attempts, _with_temperature(0.0, weighted, params))
    return JudgeScorer(judge, rival, model=model)


def panel(  # noqa: PLR0913 - a judge is declared in one line, each option a keyword
    roles: int | Sequence[str | DebaterRole] = 3,
    *,
    strategy: Strategy = "one_by_one",
    turns: int = 2,
    aspects: Sequence[str | Aspect] = (),
    rival: str | None = None,
    decide: DecisionRule = "vote",
    swap: bool = True,
    same_role: bool = False,
    summarizer: str | None = None,
    attempts: int = 3,
    model: str = "",
    quorum: int | None = None,
    **params: Any,
) -> JudgeScorer:
    """Debaters discuss the answer, then each of them judges it (ChatEval).

    Calls: orders x (debaters x (turns + 1) + summaries); 2 orders with a rival, else 1; as many summaries
    as turns under `simultaneous_summarizer`, else none.

    Args:
        roles: known roles or names of your own, in the order of speaking; `DebaterRole` objects for prompts or
            models of your own; or how many of the known roles to take.
        strategy: `one_by_one`, `simultaneous` or `simultaneous_summarizer`.
        turns: of talk, before the final one in which each judges.
        aspects: see `multiple_evidence`.
        rival: see `pairwise`; None scores the answer alone.
        decide: with a rival: by `vote`, a tie where there is no majority, or by mean `scores`.
        swap: see `pairwise`.
        same_role: gives every debater the same neutral prompt (the paper's ablation).
        summarizer: the model that sums up; None for the judge model.
        attempts: see `single`.
        model: see `single`.
        quorum: see `multiple_evidence`.
        params: see `single`.

    Raises:
        SettingsError: no debaters, an unknown strategy, a negative number of turns, or aspects as in `single`.
    """
    form = _form(aspects, rival, decide)
    seats = debaters(roles, same_role=same_role)
    checked = _with_temperature(0.0, panel, params)
    judge = Panel(form, seats, strategy, turns, swap, summarizer, attempts, checked, quorum)
    return JudgeScorer(judge, rival, model=model)


def _with_temperature(
    temperature: float, factory: Callable[..., JudgeScorer], params: Mapping[str, Any]
) -> dict[str, Any]:
    return {"temperature": temperature, **generation_params(factory, params)}


def _form(aspects: Sequence[str | Aspect], rival: str | None, decide: DecisionRule) -> Form:
    wanted = _aspects(aspects)
    if decide not in get_args(DecisionRule):
        raise SettingsError(f"a comparison is decided by vote or by scores; got {decide!r}")
    if rival is None:
        return ScoresForm(wanted)
    _one_aspect(wanted, rival)
    return ChoiceForm(wanted[0]) if decide == "vote" else PairedScores(wanted[0])


def _aspects(aspects: Sequence[str | Aspect], plain: Aspect = QUALITY) -> tuple[Aspect, ...]:
    if isinstance(aspects, str):
        raise SettingsError(f"aspects are a list of names; got the text {aspects!r}")
    wanted = [
        Aspect(aspect, low=plain.low, high=plain.high) if isinstance(aspect, str) else aspect
        for aspect in aspects or (plain,)
    ]
    names = [aspect.name for aspect in wanted]
    if len(set(names)) < len(names):
        raise SettingsError(f"aspects are scores and need names of their own; got {', '.join(names)}")
    return tuple(wanted)


def _one_aspect(aspects: Sequence[Aspect], rival: str | None) -> None:
    if rival is not None and len(aspects) > 1:
        names = ", ".join(aspect.name for aspect in aspects)
        raise SettingsError(f"two answers are compared on one aspect, not on several; got {names}")
