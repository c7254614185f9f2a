from .case_model import BlockingModel, CaseModel, effect
from .endpoint import Endpoint

__all__ = ["BlockingModel", "CaseModel", "Endpoint", "effect"]
