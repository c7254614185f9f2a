"""A small suite for the example in docs/ci.md: cheap, and within reach of the embedded model."""

from collections.abc import Mapping

from evalsuite import Sample, benchmark, contains, generate

CAPITALS = {
    "Argentina": "Buenos Aires",
    "Australia": "Canberra",
    "Austria": "Vienna",
    "Bangladesh": "Dhaka",
    "Belgium": "Brussels",
    "Bulgaria": "Sofia",
    "Cambodia": "Phnom Penh",
    "Canada": "Ottawa",
    "Chile": "Santiago",
    "China": "Beijing",
    "Croatia": "Zagreb",
    "Cuba": "Havana",
    "Denmark": "Copenhagen",
    "Egypt": "Cairo",
    "Estonia": "Tallinn",
    "Ethiopia": "Addis Ababa",
    "Finland": "Helsinki",
    "France": "Paris",
    "Germany": "Berlin",
    "Ghana": "Accra",
    "Greece": "Athens",
    "Hungary": "Budapest",
    "Iceland": "Reykjavik",
    "Iran": "Tehran",
    "Iraq": "Baghdad",
    "Ireland": "Dublin",
    "Italy": "Rome",
    "Jamaica": "Kingston",
    "Japan": "Tokyo",
    "Jordan": "Amman",
    "Kenya": "Nairobi",
    "Latvia": "Riga",
    "Lebanon": "Beirut",
    "Morocco": "Rabat",
    "Nepal": "Kathmandu",
    "Norway": "Oslo",
    "Peru": "Lima",
    "Poland": "Warsaw",
    "Portugal": "Lisbon",
    "Qatar": "Doha",
    "Romania": "Bucharest",
    "Russia": "Moscow",
    "Serbia": "Belgrade",
    "South Korea": "Seoul",
    "Spain": "Madrid",
    "Sweden": "Stockholm",
    "Syria": "Damascus",
    "Thailand": "Bangkok",
    "Tunisia": "Tunis",
    "Turkey": "Ankara",
    "Uganda": "Kampala",
    "Ukraine": "Kyiv",
    "Uruguay": "Montevideo",
    "Venezuela": "Caracas",
    "Vietnam": "Hanoi",
}
SAMPLES = [
    Sample(id=country.replace(" ", "-"), input=f"What is the capital of {country}?", target=capital)
    for country, capital in CAPITALS.items()
]


@benchmark("capitals", SAMPLES, solver=generate(max_tokens=16, temperature=0), scorers=[contains()])
def test_capitals(scores: Mapping[str, float]) -> None:
    assert scores["contains"] == 1.0
