"""The names of formats and variants, as the public function takes them."""

from __future__ import annotations

from typing import Literal

Format = Literal["markdown", "html", "latex"]
Variant = Literal["standard", "released"]
FORMATS: tuple[Format, ...] = ("markdown", "html", "latex")
VARIANTS: tuple[Variant, ...] = ("released",)
