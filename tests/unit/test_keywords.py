"""Names of parameters that are nearly right are refused where they are written."""

from __future__ import annotations

import pytest

from evalsuite.core.errors import SettingsError
from evalsuite.core.keywords import refuse_unknown_names, select_generation_params
from evalsuite.core.settings import make_settings


@pytest.mark.parametrize("option", ["model_param", "judge_param"])
def test_a_typo_in_a_parameter_s_name_is_refused_with_the_nearest_name(option: str) -> None:
    flag = "--" + option.replace("_", "-")
    with pytest.raises(SettingsError, match=rf"{flag} max_tokns: did you mean max_tokens"):
        make_settings({option: ["max_tokns=4"]})


@pytest.mark.parametrize("name", ["max_new_tokens", "top_a", "mirostat", "api", "stream", "api_key", "n", "temp"])
def test_a_parameter_of_a_server_s_own_passes(name: str) -> None:
    assert make_settings({"model_param": [f"{name}=1"]}).model_params == {name: 1}


def test_what_is_not_passed_on_is_not_offered() -> None:
    with pytest.raises(SettingsError, match=r"BFCL takes no argument 'zzz'; there are categories, max_tokens$"):
        refuse_unknown_names("BFCL", ["zzz"], ["categories", "max_tokens"])


def test_what_takes_any_generation_parameter_says_so() -> None:
    with pytest.raises(SettingsError, match=r"it takes generation parameters \(temperature.*params="):
        select_generation_params("TReB", {"zzz": 1})
