"""A model backend for `--model=parrot:NAME`: a parrot that knows some proverbs."""

from evalsuite.errors import BackendUnavailable
from evalsuite.protocols import Completion, Request, Usage

HEARD = {
    "grey": {"Time is": "money", "Better late than": "never"},
    "old": {"Time is": "money", "Better late than": "never", "Zeit ist": "Geld", "Eile mit": "Weile"},
}


class Parrot:
    """A parrot, chosen by its name; it ignores `base_url`, the value of --model-base-url."""

    metered = False
    connections: int | None = None

    def __init__(self, name: str, base_url: str | None) -> None:
        self.name, self.identity = name, f"parrot {name}"

    def check(self) -> None:
        """Refuse an unknown parrot before any case starts."""
        if self.name not in HEARD:
            raise BackendUnavailable(f"--model parrot:{self.name}: there are {', '.join(HEARD)}")

    async def complete(self, request: Request) -> Completion:
        """Answer one request; the gateway takes care of retries, limits and storage."""
        question = request.messages[-1].content
        answers = [end for beginning, end in HEARD[self.name].items() if beginning in question]
        return Completion(answers[0] if answers else "squawk", usage=Usage(1, len(question.split()), 1))

    async def aclose(self) -> None:
        """Close nothing, because nothing was opened."""
