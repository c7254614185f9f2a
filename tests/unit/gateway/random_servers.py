"""Servers drawn at random, in virtual time, and three clients: the gateway, plain back-off, and one that knows limits.

Each server has its own latency, limit and way of refusing. The plain client is what most programs do: one worker per
connection, which after a refusal waits as long as the server says, else by exponential back-off with full jitter.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.types import Completion, Message, Request, Usage
from evalsuite.gateway.gateway import Gateway
from evalsuite.gateway.limiter import Limiter
from evalsuite.models.protocol import Outage, RateLimited
from tests.unit.gateway.conftest import now, run_virtual

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
"""Plain back-off, in seconds; these are the values of the openai package."""

PATIENCE = 900.0
"""Seconds after its first refusal at which either client gives a request up."""

UNENDING = 5000.0
"""Virtual seconds after which a run counts as unfinished."""

KNOWING_STEP = 0.004
"""Seconds between two looks of the client that knows the limit."""


class MemoryStore:
    """Keeps answers as the journal does, without the disk."""

    read_only, tool_calls = False, None

    def __init__(self) -> None:
        self.kept: dict[str, Completion] = {}
        self.get = self.kept.get

    async def store_completion(self, key: str, _: Request, completion: Completion) -> Completion:
        return self.kept.setdefault(key, completion)

    has_older_keys = False
    outcomes = None

    def record_call_start(self, _key: str, _reserved: float = 0.0) -> int:
        return 0

    def record_call_end(self, *_: Any) -> None:
        pass

    def close(self) -> None:
        pass


class Rule:
    """What a server allows; this one allows everything."""

    real = True
    """Whether it is a limit, which a client can keep to, rather than refusals that come whatever it does."""

    def wait(self, time: float, number: int, tokens: int) -> float:
        """Seconds until the request is accepted; 0.0 where it is accepted now, which is only a question."""
        return 0.0

    def take(self, time: float, number: int, tokens: int) -> None:
        """Count a request that was accepted."""

    def refuse(self, number: int) -> None:
        """Count a request that was refused."""

    def end(self) -> None:
        """Count a request that was answered."""


class Bucket(Rule):
    """A token bucket of requests, or of the tokens that they take; a leaky bucket has a burst of one request.

    Args:
        steps: pairs of a time and the requests per second that are allowed from then on.
        burst: requests that it stores.
        weight: tokens per request where tokens are counted; 0 counts requests.
    """

    def __init__(self, steps: list[tuple[float, float]], burst: float, weight: float = 0.0) -> None:
        self.steps, self.burst, self.weight = steps, burst, weight
        self.level, self.at = burst, 0.0

    def rate(self, time: float) -> float:
        return [rate for begin, rate in self.steps if begin <= time][-1]

    def _amount(self, tokens: int) -> float:
        return tokens / self.weight if self.weight else 1.0

    def wait(self, time: float, number: int, tokens: int) -> float:
        rate = self.rate(time)
        self.level, self.at = min(self.burst, self.level + (time - self.at) * rate), time
        return max(0.0, (min(self._amount(tokens), self.burst) - self.level) / rate - 1e-9)

    def take(self, time: float, number: int, tokens: int) -> None:
        self.level -= self._amount(tokens)


class Window(Rule):
    """So many requests in each window of some seconds; a sliding one counts those of the latest seconds."""

    def __init__(self, most: int, seconds: float, *, sliding: bool, phase: float = 0.0) -> None:
        self.most, self.seconds, self.sliding, self.phase = most, seconds, sliding, phase
        self.taken: deque[float] = deque()

    def wait(self, time: float, number: int, tokens: int) -> float:
        # Sums of floating-point numbers are a little early or late.
        begin = time - self.seconds + 1e-9 if self.sliding else self._begin(time) - 1e-9
        while self.taken and self.taken[0] < begin:
            self.taken.popleft()
        if len(self.taken) < self.most:
            return 0.0
        return max(1e-6, (self.taken[0] if self.sliding else begin) + self.seconds - time)

    def _begin(self, time: float) -> float:
        return math.floor((time + self.phase) / self.seconds) * self.seconds - self.phase

    def take(self, time: float, number: int, tokens: int) -> None:
        self.taken.append(time)


class Cap(Rule):
    """So many requests at once."""

    def __init__(self, most: int) -> None:
        self.most, self.serving = most, 0

    def wait(self, time: float, number: int, tokens: int) -> float:
        return 0.0 if self.serving < self.most else 0.5

    def take(self, time: float, number: int, tokens: int) -> None:
        self.serving += 1

    def end(self) -> None:
        self.serving -= 1


class EachOnce(Rule):
    """Refuses each request once."""

    real = False

    def __init__(self) -> None:
        self.refused: set[int] = set()

    def wait(self, time: float, number: int, tokens: int) -> float:
        return 0.0 if number in self.refused else 1.0

    def refuse(self, number: int) -> None:
        self.refused.add(number)


class AtRandom(Rule):
    """Refuses a share of the requests, whatever comes."""

    real = False

    def __init__(self, share: float, dice: random.Random) -> None:
        self.share, self.dice = share, dice

    def wait(self, time: float, number: int, tokens: int) -> float:
        return 1.0 if self.dice.random() < self.share else 0.0


class Outages(Rule):
    """Refuses everything between pairs of times, beside another rule."""

    real = False

    def __init__(self, spans: list[tuple[float, float]], rule: Rule) -> None:
        self.spans, self.rule = spans, rule
        self.take, self.refuse, self.end = rule.take, rule.refuse, rule.end  # type: ignore[method-assign]

    def wait(self, time: float, number: int, tokens: int) -> float:
        ends = [end for begin, end in self.spans if begin <= time < end]
        return ends[0] - time if ends else self.rule.wait(time, number, tokens)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A server as it was drawn, for any number of clients.

    Attributes:
        kind: what it does, in words.
        make: its rule, new for each client.
        real: whether the rule is a limit that a client can keep to.
        calls: how many are to be answered.
        connections: calls in flight at most.
        latency: seconds of an answer, on average.
        spread: sigma of the log-normal latency.
        wire: seconds from the client to the server and back.
        retry_after: `none`, `true`, or seconds that each refusal names.
        overload: whether it refuses with 503 instead of 429.
        lie: seconds after which each answer says that more is allowed, with nothing left now; 0 for no such header.
    """

    kind: str
    make: Callable[[random.Random], Rule]
    real: bool
    calls: int
    connections: int
    latency: float
    spread: float
    wire: float
    retry_after: str | float
    overload: bool
    lie: float

    def __str__(self) -> str:
        said = "" if self.retry_after == "none" else f", Retry-After {self.retry_after}"
        return (
            f"{self.kind}{' by 503' if self.overload else ''}{said}, {self.calls} calls on {self.connections}, "
            f"{self.latency:.2f} s, wire {self.wire:.3f}"
        )


class Server:
    """A backend of the gateway that stands for a drawn server."""

    metered = True
    connections: int | None = None
    identity = "server"

    def __init__(self, drawn: Drawn, seed: int) -> None:
        self.drawn, self.dice = drawn, random.Random(seed)
        self.rule = drawn.make(self.dice)
        self.refused = 0
        self.answers: list[float] = []
        self.on_exhausted: Callable[[float], None] = lambda _: None

    def check(self) -> None:
        pass

    async def aclose(self) -> None:
        pass

    async def complete(self, request: Request) -> Completion:
        drawn, number = self.drawn, int(request.messages[-1].content)
        tokens = tokens_of(number)
        await asyncio.sleep(drawn.wire / 2)
        if wait := self.rule.wait(now(), number, tokens):
            self.rule.refuse(number)
            self.refused += 1
            await asyncio.sleep(drawn.wire / 2)
            raise self._refusal(wait)
        self.rule.take(now(), number, tokens)
        await asyncio.sleep(drawn.latency * self.dice.lognormvariate(-(drawn.spread**2) / 2, drawn.spread))
        self.rule.end()
        await asyncio.sleep(drawn.wire / 2)
        self.answers.append(now())
        if drawn.lie:
            self.on_exhausted(drawn.lie)
        return Completion("fine", usage=Usage(1, tokens // 2, tokens - tokens // 2))

    def _refusal(self, wait: float) -> Exception:
        said = self.drawn.retry_after
        if said == "none":
            return Outage("503") if self.drawn.overload else RateLimited("429")
        # A header in whole seconds, as most servers send it.
        return RateLimited("429", math.ceil(wait) if said == "true" else float(said))


def draw(dice: random.Random) -> Drawn:
    """Draw a server."""
    kinds = (_bucket, _leaky, _fixed, _sliding, _cap, _tokens, _changing, _once, _at_random, _lying, _outage)
    kind, make, real, seconds = dice.choice(kinds)(dice)
    latency = _between(dice, 0.03, 3.0)
    connections = dice.choice((8, 16, 32, 64))
    # What it takes without refusals is no longer than what the limit makes of it.
    calls = int(min(dice.choice((100, 200, 400)), max(60, seconds)))
    own: dict[str, Any] = {"retry_after": "none", "overload": False, "lie": 0.0}
    if "at once" in kind:
        own["overload"] = dice.random() < 0.5
        own["retry_after"] = dice.choice(("none", "none", 1.0, 0.0))
    elif "random" in kind or "once" in kind:
        own["retry_after"] = dice.choice(("none", "none", 0.0, 1.0))
        own["overload"] = dice.random() < 0.2
    elif "outage" in kind:
        own["overload"] = dice.random() < 0.7
    else:
        own["retry_after"] = dice.choice(("none", "true", 1.0))
    if "header" in kind:
        own["lie"] = dice.choice((5.0, 60.0))
    return Drawn(
        kind, make, real, calls, connections, latency, dice.uniform(0.0, 0.6), dice.uniform(0.004, 0.06), **own
    )


Draw = tuple[str, "Callable[[random.Random], Rule]", bool, float]
"""Words, the rule, whether it is a limit, and how many calls are a fair number for it."""


def _between(dice: random.Random, low: float, high: float) -> float:
    """A number between two others, its logarithm evenly distributed."""
    return math.exp(dice.uniform(math.log(low), math.log(high)))


def _bucket(dice: random.Random) -> Draw:
    rate = _between(dice, 1, 200)
    burst = max(1, int(rate * dice.choice((0.1, 1, 5))))
    return (f"bucket {rate:.1f}/s burst {burst}", lambda _: Bucket([(0, rate)], burst), True, 60 * rate)


def _leaky(dice: random.Random) -> Draw:
    rate = _between(dice, 1, 100)
    return (f"leaky {rate:.1f}/s", lambda _: Bucket([(0, rate)], 1), True, 60 * rate)


def _window(dice: random.Random, *, sliding: bool) -> Draw:
    seconds = dice.choice((1.0, 5.0, 10.0, 60.0))
    most = int(max(2, seconds * _between(dice, 0.5, 50)))
    phase = dice.uniform(0, seconds)
    words = f"{'sliding' if sliding else 'fixed'} window {most} in {seconds:g} s"
    return (words, lambda _: Window(most, seconds, sliding=sliding, phase=phase), True, 6 * most)


def _fixed(dice: random.Random) -> Draw:
    return _window(dice, sliding=False)


def _sliding(dice: random.Random) -> Draw:
    return _window(dice, sliding=True)


def _cap(dice: random.Random) -> Draw:
    most = dice.randint(1, 12)
    return (f"{most} at once", lambda _: Cap(most), True, math.inf)


def _tokens(dice: random.Random) -> Draw:
    rate = _between(dice, 1, 50)
    burst = max(2.0, rate * dice.choice((1, 5)))
    return (
        f"tokens of {rate:.1f} requests/s burst {burst:.0f}",
        lambda _: Bucket([(0, rate)], burst, 1000.0),
        True,
        60 * rate,
    )


def _changing(dice: random.Random) -> Draw:
    rate = _between(dice, 2, 60)
    steps, at = [(0.0, rate)], 0.0
    for _ in range(4):
        at += dice.uniform(3, 30)
        steps.append((at, _between(dice, rate / 4, rate * 4)))
    words = "changing " + ", ".join(f"{step:.0f}/s from {begin:.0f} s" for begin, step in steps)
    return (words, lambda _: Bucket(steps, max(1, rate / 2)), True, 60 * rate)


def _once(_: random.Random) -> Draw:
    return ("each refused once", lambda _: EachOnce(), False, math.inf)


def _at_random(dice: random.Random) -> Draw:
    share = dice.uniform(0.1, 0.8)
    return (f"{share:.0%} refused at random", lambda dice: AtRandom(share, dice), False, math.inf)


def _lying(dice: random.Random) -> Draw:
    inner, make, _, calls = dice.choice((_bucket, _at_random, _cap))(dice)
    return (f"untrue header, {inner}", make, False, calls)


def _outage(dice: random.Random) -> Draw:
    at, spans = 0.0, []
    for _ in range(dice.randint(1, 3)):
        at += dice.uniform(0.1, 4)
        end = at + _between(dice, 1, 120)
        spans.append((at, end))
        at = end
    words = "outage " + ", ".join(f"{begin:.1f} to {end:.1f} s" for begin, end in spans)
    return (words, lambda _: Outages(spans, Rule()), False, math.inf)


@dataclass(frozen=True, slots=True)
class Result:
    """What a client got of a server.

    Attributes:
        seconds: until the last answer.
        refused: requests that were refused.
        lost: calls that were given up.
    """

    seconds: float
    refused: int
    lost: int


def tokens_of(number: int) -> int:
    return random.Random(number).randint(200, 1800)


def requests(drawn: Drawn) -> list[Request]:
    return [Request("m", (Message("user", str(number)),)) for number in range(drawn.calls)]


async def _ended(server: Server, asks: list[Any]) -> Result:
    try:
        async with asyncio.timeout(UNENDING):
            outcomes = await asyncio.gather(*asks, return_exceptions=True)
    except TimeoutError:
        return Result(math.inf, server.refused, server.drawn.calls - len(server.answers))
    lost = sum(isinstance(outcome, BaseException) for outcome in outcomes)
    return Result(server.answers[-1] if server.answers else math.inf, server.refused, lost)


def through_gateway(drawn: Drawn, seed: int) -> Result:
    """Ask as a run does."""

    async def main() -> Result:
        server, store = Server(drawn, seed), MemoryStore()
        limiter = Limiter(drawn.connections, clock=now)
        gateway: Any = Gateway(lambda *_: server, store, limiter, clock=now, patience=PATIENCE)  # type: ignore[arg-type]
        result = await _ended(server, [gateway.ask(request) for request in requests(drawn)])
        await gateway.aclose()
        return result

    random.seed(seed)
    return run_virtual(main())


def with_plain_back_off(drawn: Drawn, seed: int) -> Result:
    """Ask with one worker per connection, each of which backs off on its own."""
    dice = random.Random(seed + 1)

    async def work(server: Server, waiting: deque[Request]) -> None:
        while waiting:
            await _ask_patiently(server, waiting.popleft(), dice)

    async def main() -> Result:
        server, waiting = Server(drawn, seed), deque(requests(drawn))
        result = await _ended(server, [work(server, waiting) for _ in range(drawn.connections)])
        return Result(result.seconds, result.refused, drawn.calls - len(server.answers))

    return run_virtual(main())


async def _ask_patiently(server: Server, request: Request, dice: random.Random) -> None:
    refusals, deadline = 0, math.inf
    while True:
        try:
            await server.complete(request)
        except (RateLimited, Outage) as error:
            wait = getattr(error, "retry_after", None)
            if wait is None:
                wait = dice.uniform(0.0, min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(refusals, 10)))
            refusals += 1
            deadline = min(deadline, now() + PATIENCE)
            if now() + wait > deadline:
                return
            await asyncio.sleep(wait)
        else:
            return


def with_knowledge(drawn: Drawn, seed: int) -> float:
    """Seconds of a client that sees the server's rule, so that it sends as early as possible and is never refused."""
    dice = random.Random(seed)

    async def main() -> float:
        rule, free = drawn.make(dice), asyncio.Semaphore(drawn.connections)

        async def call() -> None:
            await asyncio.sleep(drawn.wire + drawn.latency * dice.lognormvariate(-(drawn.spread**2) / 2, drawn.spread))
            # Only now does the client know that a place is free again.
            rule.end()
            free.release()

        calls = []
        for number in range(drawn.calls):
            tokens = tokens_of(number)
            await free.acquire()
            # Nothing tells when a bucket has enough.
            while wait := rule.wait(now(), number, tokens):  # noqa: ASYNC110 - a rule is asked, not waited for
                await asyncio.sleep(min(wait, KNOWING_STEP) if wait > 1e-6 else 1e-6)
            rule.take(now(), number, tokens)
            calls.append(asyncio.create_task(call()))
        await asyncio.gather(*calls)
        return now()

    return run_virtual(main())
