"""The tools of the shipped queries: one class a subject, made anew for each episode.

Nothing here reaches the network, the user's files or another episode: state lives in the object, files in a
temporary folder of the object's own. Dates, people, companies, prices and news are made up.
"""

from evalsuite.benchmarks.tool_eyes.toolbox.arithmetic import Arithmetic
from evalsuite.benchmarks.tool_eyes.toolbox.bulletins import Bulletins
from evalsuite.benchmarks.tool_eyes.toolbox.calendar_book import CalendarBook
from evalsuite.benchmarks.tool_eyes.toolbox.dates import Dates
from evalsuite.benchmarks.tool_eyes.toolbox.files import Files
from evalsuite.benchmarks.tool_eyes.toolbox.household import Household
from evalsuite.benchmarks.tool_eyes.toolbox.market import Market
from evalsuite.benchmarks.tool_eyes.toolbox.placeholders import Placeholders
from evalsuite.benchmarks.tool_eyes.toolbox.random_data import RandomData
from evalsuite.benchmarks.tool_eyes.toolbox.records import Records
from evalsuite.benchmarks.tool_eyes.toolbox.savings import Savings
from evalsuite.benchmarks.tool_eyes.toolbox.text_analysis import TextAnalysis
from evalsuite.benchmarks.tool_eyes.toolbox.validation import Validation

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
