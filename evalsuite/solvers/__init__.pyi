from .application import application
from .conversation import conversation
from .functions import functions
from .generate import generate
from .interleaved import interleaved
from .program_of_thought import program_of_thought
from .react import react

__all__ = [
    "application",
    "conversation",
    "functions",
    "generate",
    "interleaved",
    "program_of_thought",
    "react",
]
