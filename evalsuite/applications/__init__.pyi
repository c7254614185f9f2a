from .case_model import BlockingModel, CaseModel
from .endpoint import Endpoint

__all__ = [
    "BlockingModel",
    "CaseModel",
    "Endpoint",
]
