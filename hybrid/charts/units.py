"""Numbers as people read them: seconds, counts, rates, shares.

Invariant: every function accepts anything a summary or trace may hold (None, text, NaN, infinity included) and answers
with text; what is not a finite number is a dash, never an exception.
"""

from __future__ import annotations

import math

from cpu_engine.counted import plural_of

DASH = "\N{EN DASH}"
HUGE = 1e30  # no time, count or rate is larger; sums and percentages of what is allowed cannot overflow
LARGEST = 2**63  # counts are 64-bit; beyond it a number is damage, and sums of such overflow
SPACE = "\N{NO-BREAK SPACE}"  # a value and its unit stay on one line


def number(value: object) -> float | None:
    """``value`` as a float that can be a quantity, else None. Booleans are not numbers here."""
    if value is None or isinstance(value, bool | str | bytes):
        return None
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return found if abs(found) <= HUGE else None  # NaN and infinity fail the comparison


def whole(value: object) -> int:
    """``value`` as an int, exact up to LARGEST; 0 when it is not a number that can be a count."""
    found = number(value)
    if found is None or abs(found) > LARGEST:
        return 0
    return value if isinstance(value, int) else int(found)


def significant(value: float, digits: int = 3) -> str:
    """``value`` with at least ``digits`` significant digits, never in scientific notation."""
    if value == 0:
        return "0"
    before_point = max(1, math.floor(math.log10(abs(value))) + 1) if abs(value) >= 1 else 1
    return f"{value:,.{max(0, digits - before_point)}f}"


def seconds(value: object) -> str:
    """A duration: ``310 µs``, ``14.8 ms``, ``4.21 s``, ``2 min 5 s``, ``3 h 4 min``."""
    found = number(value)
    if found is None:
        return DASH
    if found < 0:
        return "-" + seconds(-found)
    if found == 0:
        return f"0{SPACE}s"
    if found < 0.9995e-3:
        return f"{significant(found * 1e6)}{SPACE}µs"
    if found < 0.9995:
        return f"{significant(found * 1e3)}{SPACE}ms"
    if found < 119.5:
        return f"{significant(found)}{SPACE}s"
    if found < 7199.5:
        minutes, rest = divmod(round(found), 60)
        return f"{minutes}{SPACE}min {rest}{SPACE}s"
    hours, minutes = divmod(round(found / 60), 60)
    return f"{hours:,}{SPACE}h {minutes}{SPACE}min"


def count(value: object) -> str:
    """A whole number with thousands separators: ``1,048,576``."""
    found = number(value)
    if found is None or abs(found) > LARGEST:
        return DASH
    return f"{whole(value):,}" if float(found).is_integer() else significant(found)


def moment(value: object) -> str:
    """A moment of the job, fine enough to distinguish neighbouring steps: ``3.1742 s``."""
    found = number(value)
    return DASH if found is None else f"{found:,.4f}{SPACE}s"


def tick(value: float) -> str:
    """A duration as an axis label: like ``seconds`` but without trailing zeros."""
    text, _, unit = seconds(value).partition(SPACE)
    return f"{_trimmed(text)}{SPACE}{unit}"


def _trimmed(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def compact(value: object) -> str:
    """A count or rate in few characters: ``950``, ``12.3 k``, ``1.05 M``, ``3.2 G``."""
    found = number(value)
    if found is None:
        return DASH
    if found < 0:
        return "-" + compact(-found)
    if found < 999.5:
        return f"{int(found)}" if float(found).is_integer() else significant(found)
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
        if found < 999.5 * size:
            return f"{_trimmed(significant(found / size))}{SPACE}{unit}"
    return f"{found:.2e}"


def size(value: object) -> str:
    """An amount of data: ``950 B``, ``12.3 kB``, ``1.05 MB``."""
    text = compact(value)
    return text if text == DASH else f"{text}B" if SPACE in text else f"{text}{SPACE}B"


def share(part: object, total: object) -> str:
    """``part`` of ``total`` in per cent: ``4.1 %``."""
    top, bottom = number(part), number(total)
    if top is None or not bottom:
        return DASH
    value = 100 * top / bottom
    if 0 < value < 0.1:
        return f"<{SPACE}0.1{SPACE}%"
    return f"{significant(value, 2) if value < 99.5 else f'{value:.0f}'}{SPACE}%"


def ratio(value: object) -> str:
    """A speed-up: ``0.08x``, ``1.9x``, ``12x``."""
    found = number(value)
    if found is None:
        return DASH
    return f"{found:.2f}x" if found < 9.95 else f"{found:,.0f}x"


def plural(amount: object, noun: str, nouns: str | None = None) -> str:
    """``1 round``, ``12,000 rounds``."""
    return f"{count(amount)}{SPACE}{noun if number(amount) == 1 else nouns or plural_of(noun)}"
