from .applications import application
from .conversations import conversation
from .function_calling import tool_loop
from .programs import interleaved, program_of_thought
from .react_protocol import react
from .single_call import generate

__all__ = ["application", "conversation", "generate", "interleaved", "program_of_thought", "react", "tool_loop"]
