"""The backend behind `--model=parrot:NAME`: a bird that has heard some proverbs."""

from evalsuite.errors import BackendUnavailable
from evalsuite.protocols import Completion, Request, Usage

HEARD = {
    "grey": {"Time is": "money", "Better late than": "never"},
    "old": {"Time is": "money", "Better late than": "never", "Zeit ist": "Geld", "Eile mit": "Weile"},
}


class Parrot:
    """A parrot by its name; `base_url` is what --model-base-url says, and means nothing to a bird."""

    metered = False
    connections: int | None = None

    def __init__(self, name: str, base_url: str | None) -> None:
        self.name, self.identity = name, f"parrot {name}"

    def check(self) -> None:
        """Says before any case begins that there is no such parrot."""
        if self.name not in HEARD:
            raise BackendUnavailable(f"--model parrot:{self.name}: there are {', '.join(HEARD)}")

    async def complete(self, request: Request) -> Completion:
        """One answer; retries, limits and the store are the gateway's business."""
        question = request.messages[-1].content
        answers = [end for beginning, end in HEARD[self.name].items() if beginning in question]
        return Completion(answers[0] if answers else "squawk", usage=Usage(1, len(question.split()), 1))

    async def aclose(self) -> None:
        """Nothing was opened."""
