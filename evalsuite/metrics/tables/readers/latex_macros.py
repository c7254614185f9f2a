r"""What LaTeX's macros mean for the text of a cell: nothing, a character, an argument that is no text."""

# ruff: noqa: RUF001 - characters that look like others are what this is about

from __future__ import annotations

CAPTIONS = frozenset({"caption", "captionof", "tablecaption", "topcaption", "bottomcaption"})
ROW_END_MACROS = frozenset({"tabularnewline", "cr", "crcr"})

BOLD = frozenset({"textbf", "mathbf", "bfseries", "bf", "bm", "boldsymbol"})
RULES = frozenset({
    "hline", "toprule", "midrule", "bottomrule", "firsthline", "lasthline", "hdashline", "specialrule", "Xhline",
    "hhline", "hlineB", "thickhline", "Hline", "tabucline", "hlinewd",
})  # fmt: skip
"""Rules over the whole width."""

SILENT = {
    # rules and spacing between rows
    **dict.fromkeys(("hline", "toprule", "midrule", "bottomrule", "firsthline", "lasthline", "hdashline"), 0),
    **dict.fromkeys(("thickhline", "Hline", "endline", "vline", "vrule"), 0),
    **dict.fromkeys(("cline", "cmidrule", "cdashline", "addlinespace", "noalign", "morecmidrules"), 1),
    **dict.fromkeys(("Xhline", "hhline", "hlineB", "hlinewd", "Xcline", "clineB", "tabucline", "Cline"), 1),
    **dict.fromkeys(
        ("arrayrulecolor", "doublerulesepcolor", "CodeBefore", "SetRow", "SetColumn", "SetHline"), 1
    ),
    **dict.fromkeys(("arrayrulewidth", "tabcolsep", "arraystretch"), 0),
    # what the table environments of journals put around their rows
    **dict.fromkeys(("enddata", "nodata", "colnumbers", "sptablerotate"), 0),
    **dict.fromkeys(
        ("tablewidth", "tabletypesize", "tablenum", "tablecolumns", "tablecomments", "tablerefs"), 1
    ),
    # struts
    **dict.fromkeys(("T", "B", "Tstrut", "Bstrut", "TBstrut", "bigstrut", "topstrut", "bottomstrut"), 0),
    "footnotemark": 0,
    "specialrule": 3,
    # colours, boxes and spaces, whose argument is no text; what they colour or box is
    **dict.fromkeys(("rowcolor", "cellcolor", "columncolor", "color", "textcolor", "colorbox"), 1),
    **dict.fromkeys(("hspace", "vspace", "hskip", "vskip", "phantom", "hphantom", "vphantom", "label"), 1),
    **dict.fromkeys(("rotatebox", "scalebox", "raisebox", "parbox", "includegraphics", "href", "gape"), 1),
    **dict.fromkeys(("rule", "resizebox", "fontsize", "setlength", "addtolength", "fcolorbox"), 2),
    **dict.fromkeys(("rowcolors", "setcounter", "renewcommand", "newcommand", "definecolor"), 3),
}
"""Macros that leave nothing, with how many arguments vanish with them (optional ones always do)."""

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
"""Macros that only change how things look, be there braces around what follows or not; those that space
things out leave a space."""
SPACES = frozenset({"quad", "qquad", "enspace", "thinspace", "newline", "linebreak", "par", "hfill"})

KEPT = frozenset({"binom"})
"""Macros that stay though a group follows: without them their two arguments would be one number."""
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
    "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "aa": "å", "AA": "Å",
    "l": "ł", "L": "Ł", "i": "ı", "j": "ȷ", "dag": "†", "ddag": "‡", "S": "§", "P": "¶", "pounds": "£",
    "copyright": "©", "textregistered": "®", "texttrademark": "™", "euro": "€", "texteuro": "€",
    "dots": "…", "ldots": "…", "cdots": "…", "textellipsis": "…", "times": "×", "div": "÷", "pm": "±",
    "mp": "∓", "cdot": "·", "textperiodcentered": "·", "degree": "°", "textdegree": "°", "circ": "∘",
    "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "neq": "≠", "ne": "≠", "approx": "≈", "sim": "∼",
    "infty": "∞", "to": "→", "rightarrow": "→", "leftarrow": "←", "uparrow": "↑", "downarrow": "↓",
    "checkmark": "✓", "bullet": "•", "textbullet": "•", "star": "⋆", "ast": "∗", "textbar": "|",
    "textless": "<", "textgreater": ">", "textbackslash": "\\", "textasciitilde": "~", "lbrace": "{",
    "rbrace": "}", "textasciicircum": "^", "textunderscore": "_", "textendash": "–", "textemdash": "—",
    "textquoteright": "’", "textquoteleft": "‘", "textpm": "±", "texttimes": "×", "mu": "μ",
    "textmu": "μ", "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "lambda": "λ",
    "sigma": "σ", "theta": "θ", "pi": "π", "tau": "τ", "phi": "φ", "omega": "ω", "Delta": "Δ", "Omega": "Ω",
    "varepsilon": "ε", "zeta": "ζ", "eta": "η", "iota": "ι", "kappa": "κ", "nu": "ν", "xi": "ξ", "rho": "ρ",
    "upsilon": "υ", "chi": "χ", "psi": "ψ", "varphi": "φ", "vartheta": "θ", "Gamma": "Γ", "Theta": "Θ",
    "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "ell": "ℓ", "mid": "|",
    "Uparrow": "⇑", "Downarrow": "⇓", "nearrow": "↗", "searrow": "↘", "leftrightarrow": "↔", "prime": "′",
    "percent": "%", "textpercent": "%", "textasteriskcentered": "*", "dagger": "†", "ddagger": "‡",
    "xmark": "✗", "cmark": "✓", "textsuperscript": "", "textsubscript": "", "textquotedbl": '"',
    "textquotedblleft": "“", "textquotedblright": "”", "textrightarrow": "→", "triangle": "△", "cdotp": "·",
    "textonehalf": "½", "propto": "∝", "partial": "∂", "nabla": "∇", "sum": "∑", "in": "∈", "cup": "∪",
    "cap": "∩", "subset": "⊂", "emptyset": "∅", "neg": "¬", "land": "∧", "lor": "∨", "forall": "∀",
    "wedge": "∧", "vee": "∨", "oplus": "⊕", "otimes": "⊗", "diamond": "⋄", "circledR": "®",
}  # fmt: skip
"""Macros that are one character. Any other macro vanishes if a group follows, which is then text like any
other (`\\textbf{...}`), and else stays as it was written."""

SIGN_SPACES = frozenset(" ,;:/\n\t")
SIGN_NOTHING = frozenset("!-()[]@")
ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
}  # fmt: skip
LETTER_ACCENTS = {
    "c": "\u0327", "v": "\u030c", "u": "\u0306", "H": "\u030b", "k": "\u0328", "r": "\u030a", "d": "\u0323",
}  # fmt: skip
"""Accents by the sign or letter of their macro, as characters that combine with the one before them."""
