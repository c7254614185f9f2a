"""Convert LaTeX to the text that it prints: split it into tokens, and read tokens and macros."""

# ruff: noqa: RUF001 - this module converts characters that look like others

import re
from collections import Counter
from functools import cache
from typing import Literal, NamedTuple, cast

from evalsuite.metrics.tables.grid import normalise_text

CAPTIONS = frozenset({"caption", "captionof", "tablecaption", "topcaption", "bottomcaption"})
ROW_END_MACROS = frozenset({"tabularnewline", "cr", "crcr"})
BOLD = frozenset({"textbf", "mathbf", "bfseries", "bf", "bm", "boldsymbol"})
RULES = {
    **dict.fromkeys(("hline", "toprule", "midrule", "bottomrule", "firsthline", "lasthline", "hdashline"), 0),
    **dict.fromkeys(("thickhline", "Hline"), 0),
    **dict.fromkeys(("Xhline", "hhline", "hlineB", "hlinewd", "tabucline"), 1),
    "specialrule": 3,
}
"""Macros that draw rules across the whole width, each with its number of required arguments."""
SILENT = {
    **RULES,
    # Macros for other rules, and for spacing between rows.
    **dict.fromkeys(("arrayrulewidth", "tabcolsep", "arraystretch", "addlinespace", "morecmidrules"), 0),
    **dict.fromkeys(("endline", "vline", "vrule"), 0),
    **dict.fromkeys(("cline", "cmidrule", "cdashline", "Xcline", "clineB", "Cline", "noalign"), 1),
    **dict.fromkeys(("arrayrulecolor", "doublerulesepcolor", "CodeBefore", "SetRow", "SetColumn", "SetHline"), 1),
    # Macros that the table environments of journals put around their rows.
    **dict.fromkeys(("enddata", "nodata", "colnumbers", "sptablerotate"), 0),
    **dict.fromkeys(("tablewidth", "tabletypesize", "tablenum", "tablecolumns", "tablecomments", "tablerefs"), 1),
    # Struts.
    **dict.fromkeys(("T", "B", "Tstrut", "Bstrut", "TBstrut", "bigstrut", "topstrut", "bottomstrut"), 0),
    "footnotemark": 0,
    # Macros of colours, boxes and spaces, whose first argument is not text.
    **dict.fromkeys(("rowcolor", "cellcolor", "columncolor", "color", "textcolor", "colorbox"), 1),
    **dict.fromkeys(("hspace", "vspace", "hskip", "vskip", "phantom", "hphantom", "vphantom", "label"), 1),
    **dict.fromkeys(("rotatebox", "scalebox", "raisebox", "parbox", "includegraphics", "href", "gape"), 1),
    **dict.fromkeys(("rule", "resizebox", "fontsize", "setlength", "addtolength", "fcolorbox"), 2),
    **dict.fromkeys(("rowcolors", "setcounter", "renewcommand", "newcommand", "definecolor"), 3),
}
"""Macros that print nothing, each with its number of required arguments; arguments print nothing either."""

NAMES_OF_SWITCHES = """
    textbf textit textsl textsc texttt textrm textsf textup textmd textnormal text emph underline
    mathbf mathrm mathit mathsf mathtt mathcal mathbb bm boldsymbol
    bf it rm sf tt sc em bfseries itshape slshape scshape upshape mdseries rmfamily sffamily ttfamily
    normalfont tiny scriptsize footnotesize small normalsize large Large LARGE huge Huge boldmath
    centering raggedright raggedleft arraybackslash centerline noindent strut quad qquad enspace thinspace
    displaystyle textstyle limits nolimits left right big Big bigg Bigg par newline linebreak nobreak
    protect relax leavevmode null hfill vfill smallskip medskip bigskip maketitle unskip ignorespaces
    endhead endfirsthead endfoot endlastfoot
"""
SWITCHES = frozenset(NAMES_OF_SWITCHES.split())
"""Macros that only change how the following text looks; those in `SPACES` also print a space."""
SPACES = frozenset({"quad", "qquad", "enspace", "thinspace", "newline", "linebreak", "par", "hfill"})
KEPT = frozenset({"binom"})
"""Macros whose name is kept before a group, because their two arguments alone would look like one number."""
FRACTIONS = frozenset({"frac", "dfrac", "tfrac", "nicefrac", "sfrac"})

UNITS = {
    "kilo": "k", "mega": "M", "giga": "G", "tera": "T", "centi": "c", "milli": "m", "micro": "μ", "nano": "n",
    "meter": "m", "metre": "m", "gram": "g", "second": "s", "minute": "min", "hour": "h", "hertz": "Hz", "watt": "W",
    "volt": "V", "ampere": "A", "ohm": "Ω", "joule": "J", "newton": "N", "pascal": "Pa", "kelvin": "K", "mole": "mol",
    "celsius": "°C", "degreeCelsius": "°C", "liter": "L", "litre": "L", "byte": "B", "bit": "bit", "decibel": "dB",
    "electronvolt": "eV", "per": "/", "squared": "2", "cubed": "3",
}  # fmt: skip
"""Units of siunitx: `\\SI{5}{\\kilo\\gram}`."""
CHARACTERS = {
    **UNITS,
    "ddag": "‡", "S": "§", "P": "¶", "pounds": "£", "copyright": "©", "euro": "€", "cdots": "…",
    "textperiodcentered": "·", "degree": "°", "ne": "≠", "checkmark": "✓", "bullet": "•", "textbar": "|",
    "textless": "<", "textgreater": ">", "textasciicircum": "^", "textunderscore": "_", "textmu": "μ", "epsilon": "ε",
    "phi": "φ", "vartheta": "θ", "prime": "′", "percent": "%", "textpercent": "%", "textasteriskcentered": "*",
    "ddagger": "‡", "xmark": "✗", "cmark": "✓", "textsuperscript": "", "textsubscript": "", "textquotedbl": '"',
    "triangle": "△", "cdotp": "·", "neg": "¬", "land": "∧", "lor": "∨", "diamond": "⋄", "circledR": "®",
}  # fmt: skip
"""Macros whose character pylatexenc lacks, or gives in a form that other markup rarely has."""

KNOWN_MACROS = frozenset({
    *SILENT, *SWITCHES, *KEPT, *FRACTIONS, *CHARACTERS, *CAPTIONS, *ROW_END_MACROS, *BOLD, *RULES, "multicolumn",
    "multirow", "SetCell", "Block", "tablehead", "tablefirsthead", "startdata", "kill", "CodeAfter", "Body", "begin",
    "end", "verb", "newcolumntype", "providecommand", "def", "DeclareMathOperator",
})  # fmt: skip

SIGN_SPACES = frozenset(" ,;:/\n\t")
SIGN_NOTHING = frozenset("!-()[]@")
ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
}  # fmt: skip
LETTER_ACCENTS = {
    "hat": "\u0302", "widehat": "\u0302", "tilde": "\u0303", "widetilde": "\u0303", "bar": "\u0304",
    "overline": "\u0304", "vec": "\u20d7", "dot": "\u0307", "ddot": "\u0308", "acute": "\u0301", "grave": "\u0300",
    "check": "\u030c", "breve": "\u0306", "mathring": "\u030a",
    "c": "\u0327", "v": "\u030c", "u": "\u0306", "H": "\u030b", "k": "\u0328", "r": "\u030a", "d": "\u0323",
}  # fmt: skip
"""Accents by the sign or letter of their macro, as Unicode characters that combine with the character before them."""


TokenKind = Literal["begin", "end", "macro", "sign", "open", "close", "ampersand", "text", "verbatim", "blank"]
TOKEN = re.compile(
    r"""(?P<comment>%[^\n]*(?:\n[ \t]*)?)
    |\\begin[ \t]*\{(?P<begin>[^{}\\]*)\}
    |\\end[ \t]*\{(?P<end>[^{}\\]*)\}
    |\\verb\*?(?P<bar>[^a-zA-Z@\s*{}\\])(?P<verbatim>[^\n]{0,200}?)(?P=bar)
    |\\(?P<macro>[a-zA-Z@]+)[ \t]*\n?
    |\\(?P<sign>.)
    |(?P<open>\{)
    |(?P<close>\})
    |(?P<ampersand>&)
    |(?P<dollar>\$+)
    |(?P<blank>[~\s]+)
    |(?P<text>[^\\%{}&$~\s\[\]()]+|[\[\]()]|\\)
    """,
    re.VERBOSE | re.DOTALL,
)
FORMULA = re.compile(r"(?<!\\)\$[^$&]+\$|\\\((?:[^&\\]|\\(?!\))){0,200}\\\)|\\math[a-z]+\s*\{[^{}&]*\}")
SPACED_NUMBER = re.compile(r"(?<![\w.,])[\d.,](?:\s+[\d.,])+(?![\w.,])")
SPACE_IN_FORMULA = re.compile(
    r"(?<=[_^{])\s+|\s+(?=[_^}])|(?<=[${(])\s+(?=[-+\u2212])|(?<=[${(][-+\u2212])\s+(?=[\d.])"
)
IGNORED = frozenset({"comment", "dollar"})
LONGEST_OPTION = 40


@cache
def list_known_macros() -> frozenset[str]:
    """Return the names of the macros that this module or pylatexenc describes."""
    from pylatexenc import latex2text, latexwalker

    databases = (latexwalker.get_default_latex_context_db(), latex2text.get_default_latex_context_db())
    described = {spec.macroname for database in databases for spec in database.iter_macro_specs()}
    return KNOWN_MACROS | LETTER_ACCENTS.keys() | described


@cache
def _find_macro_character(name: str) -> str:
    """Return pylatexenc's character for a macro without arguments; empty unless it is a single character."""
    from pylatexenc import latex2text

    text = getattr(latex2text.get_default_latex_context_db().get_macro_spec(name), "simplify_repl", None)
    return text if isinstance(text, str) and len(text) == 1 and not text.isspace() else ""


class Token(NamedTuple):
    """The smallest unit of LaTeX, such as a macro, a brace, a blank or a piece of text."""

    kind: TokenKind  # A `sign` is a macro of one character that is not a letter; each bracket is a `text`.
    value: str  # The name of a macro (without its backslash) or environment; for other tokens, the characters.
    start: int  # The index of the first character in the text.
    end: int  # The index after the last character.


class LatexSource:
    """A LaTeX text, split into tokens without comments and dollar signs.

    Attributes:
        partner: the index of an opening token's closing token, and vice versa. An environment without an end of its own
            is closed at the end of the surrounding environment or of the text.
    """

    def __init__(self, text: str) -> None:
        self.text = FORMULA.sub(_remove_spaces, text)
        self.tokens = [
            Token(cast("TokenKind", kind), match[kind].strip() or " ", match.start(), match.end())
            for match in TOKEN.finditer(self.text)
            if (kind := match.lastgroup) and kind not in IGNORED
        ]
        self.partner: dict[int, int] = {}
        waiting: list[int] = []
        opening_counts: Counter[str] = Counter()
        for place, token in enumerate(self.tokens):
            if token.kind in {"open", "begin"}:
                waiting.append(place)
                opening_counts[token.value] += 1
            elif token.kind == "close" and waiting and self.tokens[waiting[-1]].kind == "open":
                opening_counts["{"] -= 1
                begin = waiting.pop()
                self.partner[begin], self.partner[place] = place, begin
            elif token.kind == "end" and opening_counts[token.value]:
                # Also end the inner environments that have no end of their own.
                while place not in self.partner:
                    begin = waiting.pop()
                    opening = self.tokens[begin]
                    opening_counts[opening.value] -= 1
                    if opening.kind == "begin":
                        self.partner[begin] = place
                        if opening.value == token.value:
                            self.partner[place] = begin
        self.partner.update((begin, len(self.tokens)) for begin in waiting if self.tokens[begin].kind == "begin")

    def is_begin_in_prose(self, place: int) -> bool:
        """Tell whether a `begin` is only a word of the prose: it has neither an argument nor an end."""
        return self.find_group_end(place + 1) == place + 1 and self.partner.get(self.partner[place]) != place

    def find_group_end(self, place: int) -> int:
        """Return the index after the group that starts at `place` or after blanks there; without a group, `place`."""
        at = self.skip_blank(place)
        if at < len(self.tokens) and self.tokens[at].kind == "open" and at in self.partner:
            return self.partner[at] + 1
        return place

    def read_group(self, place: int) -> str:
        """Return the raw text, without braces, of the group that starts at `place`; empty if no group starts there."""
        end = self.find_group_end(place)
        if end == place:
            return ""
        return self.text[self.tokens[self.skip_blank(place)].end : self.tokens[end - 1].start]

    def read_arguments(self, place: int, count: int) -> tuple[list[str], int]:
        r"""Return the raw texts of `count` arguments (empty if missing), and the index after the arguments.

        Optional arguments are skipped. An argument of one character, such as the star in `\multirow{2}*{...}`, needs no
        braces.
        """
        texts: list[str] = []
        place = self.find_option_end(place)
        while len(texts) < count:
            at, end = self.skip_blank(place), self.find_group_end(place)
            token = self.tokens[at] if at < len(self.tokens) else None
            if end > place:
                texts.append(self.read_group(place))
            elif token and token.kind == "text" and len(token.value) <= count - len(texts):
                texts, end = [*texts, *token.value], at + 1
            else:
                break
            place = self.find_option_end(end)
        return [*texts, *[""] * (count - len(texts))], place

    def find_option_end(self, place: int, brackets: str = "[]", *, is_length: bool = False) -> int:
        """Return the index after the optional argument that starts at `place`; without one, return `place`.

        The argument must end within a few tokens, because a bracket without an end is text. With `is_length`, the
        argument must contain a unit or a macro; otherwise, the bracket is text of the next row's first cell, such as an
        interval.
        """
        start = at = self.skip_blank(place)
        if at >= len(self.tokens) or self.tokens[at].value != brackets[0]:
            return place
        for _ in range(LONGEST_OPTION):
            at += 1
            if at >= len(self.tokens) or self.tokens[at].kind in {"ampersand", "begin", "end"}:
                break
            if self.tokens[at].value == brackets[1]:
                inside = self.text[self.tokens[start].end : self.tokens[at].start]
                return at + 1 if not is_length or any(map(str.isalpha, inside)) else place
            if self.tokens[at].kind == "open":
                at = self.partner.get(at, at)
        return place

    def skip_star(self, place: int) -> int:
        """Return `place`, or the index after it if the token at `place` is a star."""
        return place + (place < len(self.tokens) and self.tokens[place].value == "*")

    def skip_blank(self, place: int) -> int:
        """Return `place`, or the index after it if the token at `place` is white space."""
        return place + (place < len(self.tokens) and self.tokens[place].kind == "blank")


def _remove_spaces(formula: re.Match[str]) -> str:
    """Remove the spaces that TeX does not print: within numbers, and around a formula's subscripts and superscripts."""
    joined = SPACED_NUMBER.sub(lambda number: "".join(number[0].split()), formula[0])
    return SPACE_IN_FORMULA.sub("", SPACE_IN_FORMULA.sub("", joined))


TABULARS = frozenset({
    "tabular", "tabular*", "tabularx", "tabulary", "xltabular", "longtable", "longtable*", "supertabular",
    "supertabular*", "mpsupertabular", "xtabular", "xtabular*", "mpxtabular", "tabu", "longtabu", "tblr", "longtblr",
    "talltblr", "NiceTabular", "NiceTabular*", "NiceTabularX", "NiceArray", "array", "deluxetable", "deluxetable*",
    "tabbing",
})  # fmt: skip
WIDTH_FIRST = frozenset({
    "tabular*", "tabularx", "tabulary", "xltabular", "supertabular*", "xtabular*", "NiceTabular*", "NiceTabularX",
})  # fmt: skip
TABULARRAY = frozenset({"tblr", "longtblr", "talltblr"})
"""Environments whose markup contains blank cells below a span; the setting `colspec` may declare their columns."""
NICE = frozenset({"NiceTabular", "NiceTabular*", "NiceTabularX", "NiceArray"})
"""Environments whose options may follow their columns."""
COLUMN_SETTING = re.compile(r"colspec\s*=\s*(?:\{((?:[^{}]|\{[^{}]*\})*)\}|([^,]*))")
FARTHEST_COLUMNS = 8  # Maximum tokens between `tabu` and its columns: `\begin{tabu} to 0.5\textwidth {lc}`
DEEPEST_FRACTION = 8


class TextReader:
    """Converts LaTeX to plain text, token by token, and collects this text.

    Attributes:
        has_text: whether anything but white space was collected.
    """

    def __init__(self, source: LatexSource) -> None:
        self.source = source
        self._pieces: list[str] = []
        self.has_text = False
        self._accent = ""
        self._fractions = 0

    def take_text(self) -> str:
        """Return the collected text, normalised, and start again without text."""
        text = normalise_text("".join(self._pieces))
        self._pieces.clear()
        self._accent, self.has_text = "", False
        return text

    def read_text_of_tokens(self, place: int, end: int) -> str:
        while place < end:
            place = self.read_token(place)
        return self.take_text()

    def read_token(self, place: int) -> int:
        """Collect the text of a token; return the index after the token and after its arguments that are not text."""
        token = self.source.tokens[place]
        if token.kind in {"text", "verbatim"}:
            self._add_text(token.value)
        elif token.kind in {"blank", "ampersand", "end"}:
            self._add_text(" ")
        elif token.kind == "sign":
            self._read_control_symbol(token.value, self.source.tokens[place + 1 : place + 3])
        elif token.kind == "macro":
            return self._read_macro(token.value, place + 1)
        elif token.kind == "begin":
            self._add_text(" ")
            if token.value in TABULARS:
                return self.read_column_specification(token.value, place + 1)[1]
            if token.value in {"minipage", "adjustbox", "threeparttable"}:
                return self.source.find_group_end(self.source.find_option_end(place + 1))
        return place + 1

    def _add_text(self, text: str) -> None:
        if self._accent and text.strip():
            text, self._accent = text[0] + self._accent + text[1:], ""
        if not self.has_text and text and not text.isspace():
            self.has_text = True
        self._pieces.append(text)

    def _read_control_symbol(self, character: str, following: list[Token]) -> None:
        if character in "^~" and [token.kind for token in following] == ["open", "close"]:
            self._add_text(character)  # An accent without a letter is printed as a character.
        elif character in ACCENTS:
            self._accent = ACCENTS[character]
        elif character == "\\" or character in SIGN_SPACES:
            self._add_text(" ")
        elif character not in SIGN_NOTHING:
            self._add_text(character)

    def _read_macro(self, name: str, place: int) -> int:
        """Collect the text of a macro; return the index after the macro and after its arguments that are not text."""
        end = self.source.find_group_end(place) if name in FRACTIONS and self._fractions < DEEPEST_FRACTION else place
        if end > place:
            return self._read_fraction(place, end)
        if name in CHARACTERS:
            self._add_text(CHARACTERS[name])
        elif name in SILENT:
            return self._skip_arguments(name, place)
        elif name in SWITCHES or name in ROW_END_MACROS:
            self._add_text(" " if name in SPACES else "")
        elif name in LETTER_ACCENTS:
            self._accent = LETTER_ACCENTS[name]
        elif character := _find_macro_character(name):
            self._add_text(character)
        else:
            after = self.source.find_option_end(self.source.skip_star(place))
            if name not in KEPT and self.source.find_group_end(after) > after:
                return after
            self._add_text(f"\\{name} ")  # Without an argument, an unknown macro counts as text.
        return place

    def _read_fraction(self, place: int, numerator_end: int) -> int:
        """Collect numerator, slash and denominator (without a slash, 1/2 would be 12); return the index after them."""
        end = self.source.find_group_end(numerator_end)
        self._fractions += 1
        for start, stop in ((place, numerator_end), (numerator_end, end)):
            at = self.source.skip_blank(start) + 1
            while at < stop - 1:
                at = self.read_token(at)
            if start == place:
                self._add_text("/")
        self._fractions -= 1
        return max(end, numerator_end)

    def _skip_arguments(self, name: str, place: int) -> int:
        groups = SILENT[name]
        place = self.source.find_option_end(self.source.skip_star(place), is_length=name != "footnotemark")
        if groups:
            # Macros without arguments, such as `\hline`, are excluded: parentheses after them may begin a cell.
            place = self.source.find_option_end(place, "()")
        for further in reversed(range(groups)):
            place = self.source.find_option_end(self.source.find_group_end(place), is_length=not further)
        return place

    def read_column_specification(self, name: str, place: int) -> tuple[str, int]:
        """Return a tabular's raw column specification, and the index at which its body starts."""
        if name == "tabbing":
            return "", place
        place = self.source.find_option_end(place)
        if name in WIDTH_FIRST:
            place = self.source.find_option_end(self.source.find_group_end(place))
        if name in {"tabu", "longtabu"}:
            ahead = range(place, place + FARTHEST_COLUMNS)
            place = next((at for at in ahead if self.source.find_group_end(at) > at), place)
        columns, end = self.source.read_group(place), self.source.find_group_end(place)
        if name in TABULARRAY and "=" in columns:
            setting = COLUMN_SETTING.search(columns)
            columns = (setting[1] or setting[2] or "") if setting else ""
        return columns, self.source.find_option_end(end) if name in NICE else end


def read_caption(source: LatexSource, place: int) -> tuple[str, int]:
    """Return the caption whose macro is at this index, and the index after the caption."""
    start = source.skip_star(place + 1)
    if source.tokens[place].value == "captionof":  # The first argument of `\captionof` is the kind of float.
        start = source.find_group_end(start)
    start = source.find_option_end(start)
    end = source.find_group_end(start)
    return TextReader(source).read_text_of_tokens(start, end), max(end, place + 1)
