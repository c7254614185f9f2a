from .case_model import BlockingModel, CaseModel
from .effects import effect
from .endpoint import Endpoint

__all__ = ["BlockingModel", "CaseModel", "Endpoint", "effect"]
