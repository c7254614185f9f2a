from .applications import application
from .conversations import conversation
from .programs import interleaved, program_of_thought
from .single_call import generate
from .tool_protocols import react, tool_loop

__all__ = ["application", "conversation", "generate", "interleaved", "program_of_thought", "react", "tool_loop"]
