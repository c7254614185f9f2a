"""The tools of the shipped queries: one class per subject, instantiated for each episode.

Tools have no access to the network, the user's files or other episodes. Each instance stores its state in memory and
its files in a private temporary folder. Dates, people, companies, prices and news are fictional.
"""

from evalsuite.benchmarks.tool_eyes.toolbox.numbers import Arithmetic, Dates, Household, Market, Savings
from evalsuite.benchmarks.tool_eyes.toolbox.places import Bulletins, CalendarBook, Files, Records
from evalsuite.benchmarks.tool_eyes.toolbox.texts import Placeholders, RandomData, TextAnalysis, Validation

SUBJECTS = {
    "Random/Random": RandomData,
    "Text/Placeholders": Placeholders,
    "Text/Analysis": TextAnalysis,
    "Validation/Validation": Validation,
    "News/Bulletins": Bulletins,
    "File/Files": Files,
    "Calculator/Arithmetic": Arithmetic,
    "Calculator/Dates": Dates,
    "Calendar/Calendar": CalendarBook,
    "Household/Household": Household,
    "Database/Records": Records,
    "Finance/Market": Market,
    "Finance/Savings": Savings,
}
