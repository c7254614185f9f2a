"""PL: small sums of daily life."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.toolbox.limits import bounded, short
from evalsuite.tools import tool

if TYPE_CHECKING:
    from evalsuite.core.types import Sample


class Household:
    """Has no state."""

    def __init__(self, sample: Sample) -> None:
        """Every subject is made with the sample, whether it needs it or not."""

    @tool
    def body_mass_index(self, weight_kg: float, height_m: float) -> float:
        """Works out the body mass index: weight divided by the square of the height.

        Args:
            weight_kg: weight in kilograms.
            height_m: height in metres.
        """
        if not (1 <= weight_kg <= 500 and 0.3 <= height_m <= 3):
            raise ValueError("the weight must be 1 to 500 kg and the height 0.3 to 3 m")
        return round(weight_kg / height_m**2, 1)

    @tool
    def split_bill(self, total: float, people: int, tip_percent: float = 0.0) -> dict[str, float]:
        """Splits a bill evenly, with a tip.

        Args:
            total: the bill without tip.
            people: how many pay, 1 to 100.
            tip_percent: the tip in percent of the bill.
        """
        if not (0 <= total <= 1e9 and 0 <= tip_percent <= 100):
            raise ValueError("total must be 0 to 1e9 and tip_percent 0 to 100")
        whole = total * (1 + tip_percent / 100)
        return {"with_tip": round(whole, 2), "each": round(whole / bounded("people", people, 1, 100), 2)}

    @tool
    def scale_recipe(self, ingredients: dict[str, float], servings: int, wanted: int) -> dict[str, float]:
        """Scales the amounts of a recipe to another number of servings.

        Args:
            ingredients: amounts by ingredient.
            servings: for how many the amounts are.
            wanted: for how many they should be.
        """
        bounded("the number of ingredients", len(ingredients), 1, 100)
        factor = bounded("wanted", wanted, 1, 1000) / bounded("servings", servings, 1, 1000)
        return {
            short("ingredient", name, 100): round(amount * factor, 2) for name, amount in ingredients.items()
        }

    @tool
    def travel_time(self, distance_km: float, speed_kmh: float) -> dict[str, int]:
        """Works out how long a journey takes, in hours and minutes.

        Args:
            distance_km: length of the way in kilometres.
            speed_kmh: average speed in kilometres an hour.
        """
        if not (0 <= distance_km <= 1e6 and 0.1 <= speed_kmh <= 1e5):
            raise ValueError("the distance must be 0 to 1e6 km and the speed 0.1 to 1e5 km/h")
        hours, minutes = divmod(round(60 * distance_km / speed_kmh), 60)
        return {"hours": hours, "minutes": minutes}
