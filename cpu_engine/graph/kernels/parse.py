"""Bytes of text to numbers: the kernels under every text format.

Invariant: a kernel either consumes the whole buffer or stops at the first malformed token and says where (``out``);
numbers are exact (ids and integer weights to int64, fractions correctly rounded or handed back as "hard" tokens).
Lines are counted by the caller, from the position, and only when there is an error to report.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from cpu_engine.intrinsics.borrowed import borrow

# Status, out[STATUS].
OK = 0
NOT_A_NUMBER = 1
NEGATIVE_ID = 2
ID_OVERFLOW = 3
TOO_FEW_COLUMNS = 4
TOO_MANY_COLUMNS = 5
ID_OUT_OF_RANGE = 6
BAD_WEIGHT = 7
WEIGHT_OVERFLOW = 8
NEEDS_FLOAT = 9  # not an error: run the block again with float_mode
EMPTY_FIELD = 10
BAD_LEAD = 11
TOO_MANY_ROWS = 12

# Fields of ``out``.
STATUS, ROWS, POSITION, HARD, EDGES = 0, 1, 2, 3, 4
OUT_FIELDS = 5

# Fields of the ``spec`` of parse_rows.
LEAD, COMMENT_A, COMMENT_B, ID_COLUMNS, COLUMNS, WEIGHT_COLUMN, LOWEST, HIGHEST, FLOAT_MODE = range(9)
ROW_SPEC_FIELDS = 9
# Fields of the ``spec`` of parse_ragged.
IMPLICIT, SKIP, STRIDE, FIRST_ROW, ROW_LIMIT, RAGGED_LOWEST, RAGGED_HIGHEST, RAGGED_FLOAT_MODE = range(8)
RAGGED_SPEC_FIELDS = 8

INT64_MAX_TENTH = 922337203685477580  # (2**63 - 1) // 10, whose last digit is 7
CLIP = (1 << 59) - 1  # 10 * CLIP + 9 fits in 63 bits, and a value of 17 digits is below CLIP
EXACT_FLOAT_INTEGER = 9007199254740992  # 2**53
EXACT_POWERS = np.array([float(10**e) for e in range(23)])  # 10**22 is the last power of ten a double holds exactly
DIVISOR_DIGITS = 18
DIVISORS = np.array([10**e for e in range(DIVISOR_DIGITS + 1)], dtype=np.int64)
DIVIDEND_LIMIT = 10**17  # a tenth of it is below 2**54, where divide_exactly begins
SCALES = np.array([2.0 ** (1 - shift) for shift in range(128)])

TAB, NEWLINE, CARRIAGE_RETURN, SPACE, HASH, PERCENT, COMMA = 9, 10, 13, 32, 35, 37, 44
PLUS, MINUS, DOT, ZERO, NINE, UPPER_E, LOWER_E = 43, 45, 46, 48, 57, 69, 101

WEIGHT_INTEGER, WEIGHT_FRACTION, WEIGHT_HARD = 0, 1, 2


class EdgeArrays(NamedTuple):
    """Where the edges of a block go; a call owns them, so blocks may be parsed by several threads at once."""

    src: np.ndarray
    dst: np.ndarray
    weight_int: np.ndarray
    weight_float: np.ndarray
    hard: np.ndarray  # (row, first byte, behind the last byte) of each weight that is left to the caller
    out: np.ndarray  # see the fields above


@njit(cache=True, nogil=True)
def _is_end(byte):
    """True where a token ends: white space, line end or comma."""
    return (byte <= SPACE and (byte == SPACE or TAB <= byte <= CARRIAGE_RETURN)) or byte == COMMA


@njit(cache=True, nogil=True)
def _read_id(text, position, stop):
    """Read a non-negative integer; return (value, position behind it, status)."""
    value = np.int64(0)
    start = position
    while position < stop:
        digit = np.int64(text[position]) - ZERO
        if digit < 0 or digit > 9:
            break
        # 18 digits always fit, so the check is off the usual path.
        if position - start >= 18 and (value > INT64_MAX_TENTH or (value == INT64_MAX_TENTH and digit > 7)):
            return value, start, ID_OVERFLOW
        value = value * 10 + digit
        position += 1
    if position == start:
        if text[start] == MINUS and start + 1 < stop and ZERO <= text[start + 1] <= NINE:
            return value, start, NEGATIVE_ID
        return value, start, NOT_A_NUMBER
    if position < stop and not _is_end(text[position]):
        return value, start, NOT_A_NUMBER
    return value, position, OK


@njit(cache=True, nogil=True)
def divide_exactly(mantissa, digits):
    """mantissa / 10**digits, correctly rounded (half to even).

    Invariant  0 <= mantissa < DIVIDEND_LIMIT and 1 <= digits <= DIVISOR_DIGITS, so that all integers stay below 2**62.
    Races      none.
    Work       two operations if both numbers are exact doubles, else long division, a bit at a time (up to 114).
    """
    if mantissa <= EXACT_FLOAT_INTEGER:
        return float(mantissa) / EXACT_POWERS[digits]
    divisor = DIVISORS[digits]
    quotient = mantissa // divisor
    rest = mantissa - quotient * divisor
    shift = 0
    while quotient < EXACT_FLOAT_INTEGER:  # until it has 54 bits: those of a double and one to round by
        rest *= 2
        quotient *= 2
        if rest >= divisor:
            rest -= divisor
            quotient += 1
        shift += 1
    half = quotient & 1
    quotient >>= 1
    if half == 1 and (rest > 0 or (quotient & 1) == 1):
        quotient += 1
    return float(quotient) * SCALES[shift]


@njit(cache=True, nogil=True)
def _read_exponent(text, position, stop):
    """Read what follows an E, if it is there and a number; return (value, position behind it)."""
    start, value = position, np.int64(0)
    if position >= stop or (text[position] != LOWER_E and text[position] != UPPER_E):
        return value, start
    position += 1
    negative = position < stop and text[position] == MINUS
    if position < stop and (text[position] == MINUS or text[position] == PLUS):
        position += 1
    first = position
    while position < stop and ZERO <= text[position] <= NINE:
        if value < 100000:  # beyond any double; the value is settled by the hard path
            value = value * 10 + (np.int64(text[position]) - ZERO)
        position += 1
    if position == first:
        return value, start
    return -value if negative else value, position


@njit(cache=True, nogil=True)
def _read_weight(text, position, stop):
    """Read a decimal number; return (integer, fraction, kind, position behind it, status).

    ``kind`` says which value counts; WEIGHT_HARD means well formed, but not exactly computable here.
    """
    start = position
    negative = text[position] == MINUS
    if negative or text[position] == PLUS:
        position += 1
    mantissa = np.int64(0)
    digits = 0  # all digits seen, zeros in front included
    kept = 0  # digits that are in the mantissa, counted from its first non-zero digit
    dropped = 0  # digits in front of the point that are not in the mantissa
    scale = 0
    seen_dot = False
    while position < stop:
        byte = np.int64(text[position])
        digit = byte - ZERO
        if 0 <= digit <= 9:
            digits += 1
            if kept < 18 or (
                kept == 18 and (mantissa < INT64_MAX_TENTH or (mantissa == INT64_MAX_TENTH and digit <= 7))
            ):
                mantissa = mantissa * 10 + digit
                if mantissa > 0:
                    kept += 1
                if seen_dot:
                    scale -= 1
            else:
                kept = 20  # never take a later digit after one was dropped
                dropped += 1
        elif byte == DOT and not seen_dot:
            seen_dot = True
        else:
            break
        position += 1
    if digits == 0:
        return mantissa, 0.0, WEIGHT_INTEGER, start, BAD_WEIGHT
    exponent, behind = _read_exponent(text, position, stop)
    has_exponent = behind > position
    position = behind
    if position < stop and not _is_end(text[position]):
        return mantissa, 0.0, WEIGHT_INTEGER, start, BAD_WEIGHT
    if not seen_dot and not has_exponent:
        if dropped > 0:
            return mantissa, 0.0, WEIGHT_INTEGER, start, WEIGHT_OVERFLOW
        signed = -mantissa if negative else mantissa
        return signed, float(signed), WEIGHT_INTEGER, position, OK
    exponent += scale
    if dropped == 0 and mantissa <= EXACT_FLOAT_INTEGER and 0 <= exponent <= 22:
        fraction = float(mantissa) * EXACT_POWERS[exponent]  # correctly rounded, because both operands are exact
    elif dropped == 0 and mantissa < DIVIDEND_LIMIT and -DIVISOR_DIGITS <= exponent < 0:
        fraction = divide_exactly(mantissa, -exponent)
    else:
        return mantissa, 0.0, WEIGHT_HARD, position, OK
    return mantissa, -fraction if negative else fraction, WEIGHT_FRACTION, position, OK


@njit(cache=True, nogil=True)
def _skip_separators(text, position, stop):
    """Go to the next token or line end; return (position, commas passed)."""
    commas = 0
    while position < stop:
        byte = text[position]
        if byte == COMMA:
            commas += 1
        elif byte == NEWLINE or not _is_end(byte):
            break
        position += 1
    return position, commas


@njit(cache=True, nogil=True)
def _skip_line(text, position, stop):
    """Go to the newline that ends this line, or to ``stop``."""
    while position < stop and text[position] != NEWLINE:
        position += 1
    return position


@njit(cache=True, nogil=True)
def _skip_token(text, position, stop):
    """Go behind the token at ``position``."""
    while position < stop and not _is_end(text[position]):
        position += 1
    return position


@njit(cache=True, nogil=True)
def _store_weight(text, start, stop, row, float_mode, parsed):
    """Read the weight at ``start`` into row ``row``; return (position behind it, status)."""
    integer, fraction, kind, position, status = _read_weight(text, start, stop)
    if status != OK:
        return start, status
    if float_mode == 0:
        if kind != WEIGHT_INTEGER:
            return start, NEEDS_FLOAT
        parsed.weight_int[row] = integer
    elif kind == WEIGHT_HARD:
        hard, out = parsed.hard, parsed.out
        at = out[HARD]
        hard[at, 0] = row
        hard[at, 1] = start
        hard[at, 2] = position
        out[HARD] = at + 1
    else:
        parsed.weight_float[row] = fraction
    return position, OK


@njit(cache=True, nogil=True, inline="always")
def _read_digits(text, at, value):
    """Append the digits at ``at`` to ``value``; return (it, position behind them)."""
    while text[at] >= ZERO and text[at] <= NINE:
        value = (value * 10 + np.int64(text[at]) - ZERO) & CLIP
        at += np.uint64(1)
    return value, at


@njit(cache=True, nogil=True)
def _parse_plain_rows(text, position, last_newline, spec, row, parsed):
    """Parse lines of just ``digits separator digits [separator digits[.digits]]``; return (position, row) at another.

    Invariant  rows below the returned one are complete; the line at the returned position is untouched.
    Races      none: a call owns ``parsed``.
    Work       O(bytes), several times as fast as the general loop because it passes no arrays on. It starts before the
               last newline, which ends every loop, so no bound needs checking; positions are unsigned, because numba
               tests signed ones for counting from the end.
    """
    src, dst, weight_int, weight_float, _, _ = parsed
    columns, lowest, highest, float_mode = spec[COLUMNS], spec[LOWEST], spec[HIGHEST], spec[FLOAT_MODE] != 0
    one, longest = np.uint64(1), np.uint64(17)
    line = np.uint64(position)
    end = np.uint64(last_newline)
    while line < end:
        first, at = _read_digits(text, line, np.int64(0))
        byte = text[at]
        if at == line or at - line > longest or (byte != SPACE and byte != TAB and byte != COMMA):
            break
        at += one
        start = at
        second, at = _read_digits(text, start, np.int64(0))
        if at == start or at - start > longest:
            break
        if columns == 3:
            byte = text[at]
            if byte != SPACE and byte != TAB and byte != COMMA:
                break
            at += one
            start = at
            third, at = _read_digits(text, start, np.int64(0))
            behind_point = at
            if float_mode and text[at] == DOT:
                behind_point = at + one
                third, at = _read_digits(text, behind_point, third)
            # "0." in front is not part of the mantissa; elsewhere the point counts as a digit, which saves a test.
            most = longest + one + one if text[start] == ZERO and text[start + one] == DOT else longest
            if at == start or at - start > most:
                break
            if not float_mode:
                weight_int[row] = third
            elif at == behind_point:
                weight_float[row] = float(third)
            else:
                weight_float[row] = divide_exactly(third, np.int64(at - behind_point))
        if text[at] == CARRIAGE_RETURN:
            at += one
        if text[at] != NEWLINE or first < lowest or first > highest or second < lowest or second > highest:
            break
        src[row] = first
        dst[row] = second
        row += 1
        line = at + one
    return np.int64(line), row


@njit(cache=True, nogil=True)
def _parse_row(text, position, stop, spec, row, parsed):
    """Parse the columns of one line into row ``row``; return (position of the line's end, OK), or of what is wrong."""
    column, id_columns, columns = 0, spec[ID_COLUMNS], spec[COLUMNS]
    while position < stop and text[position] != NEWLINE:
        byte = text[position]
        if column > 0 and (byte == spec[COMMENT_A] or byte == spec[COMMENT_B]):
            position = _skip_line(text, position, stop)
            break
        if column == columns:
            return position, TOO_MANY_COLUMNS
        if column < id_columns:
            value, behind, status = _read_id(text, position, stop)
            if status != OK:
                return position, status
            if value < spec[LOWEST] or value > spec[HIGHEST]:
                return position, ID_OUT_OF_RANGE
            position = behind
            if column == 0:
                parsed.src[row] = value
            else:
                parsed.dst[row] = value
        elif column == spec[WEIGHT_COLUMN]:
            position, status = _store_weight(text, position, stop, row, spec[FLOAT_MODE], parsed)
            if status != OK:
                return position, status
        else:
            position = _skip_token(text, position, stop)
        column += 1
        position, commas = _skip_separators(text, position, stop)
        if commas > 1 or (commas == 1 and (position >= stop or text[position] == NEWLINE)):
            return position, EMPTY_FIELD
    return position, OK if column >= columns else TOO_FEW_COLUMNS


@njit(cache=True, nogil=True)
def parse_rows(text, spec, parsed):
    """Parse lines of a fixed number of columns: ids first, perhaps a weight among the others.

    Invariant  rows 0..out[ROWS]-1 are complete; on an error out[POSITION] is the offending token (or line end).
    Races      none: a call owns ``parsed``.
    Work       O(bytes), one pass, no allocation. The outputs hold a row per line of ``text``.
    """
    text, spec, parsed = borrow(text), borrow(spec), borrow(parsed)  # or every line's call would count references
    stop, lead, columns, out = text.size, spec[LEAD], spec[COLUMNS], parsed.out
    last_newline = stop - 1
    while last_newline >= 0 and text[last_newline] != NEWLINE:
        last_newline -= 1
    row, position, status = 0, 0, OK
    out[HARD] = 0
    plain = lead == 0 and spec[ID_COLUMNS] == 2 and (columns == 2 or (columns == 3 and spec[WEIGHT_COLUMN] == 2))
    while position < stop:
        if plain and position < last_newline:
            # What is not plain, errors included, is left to the general code below, a line at a time.
            position, row = _parse_plain_rows(text, position, last_newline, spec, row, parsed)
        position, commas = _skip_separators(text, position, stop)
        if position >= stop and commas == 0:
            break
        if commas > 0:
            status = EMPTY_FIELD
            break
        byte = text[position]
        if byte == NEWLINE:
            position += 1
            continue
        if byte == spec[COMMENT_A] or byte == spec[COMMENT_B]:
            position = _skip_line(text, position, stop)
            continue
        if lead != 0:
            if byte != lead or (position + 1 < stop and not _is_end(text[position + 1])):
                status = BAD_LEAD
                break
            position, commas = _skip_separators(text, position + 1, stop)
        position, status = _parse_row(text, position, stop, spec, row, parsed)
        if status != OK:
            break
        row += 1
    out[STATUS], out[ROWS], out[POSITION] = status, row, position


@njit(cache=True, nogil=True)
def _parse_neighbours(text, position, stop, spec, vertex, edge, parsed):
    """Parse one line's neighbours into the entries from ``edge`` on; return (position, vertex, next entry, status)."""
    column, implicit, skip, stride = 0, spec[IMPLICIT] != 0, spec[SKIP], spec[STRIDE]
    while position < stop and text[position] != NEWLINE:
        if text[position] == HASH or text[position] == PERCENT:
            position = _skip_line(text, position, stop)
            break
        if implicit and column < skip:
            position = _skip_token(text, position, stop)
        elif stride == 2 and (column - skip) % 2 == 1:
            position, status = _store_weight(text, position, stop, edge - 1, spec[RAGGED_FLOAT_MODE], parsed)
            if status != OK:
                return position, vertex, edge, status
        else:
            value, behind, status = _read_id(text, position, stop)
            if status != OK:
                return position, vertex, edge, status
            if value < spec[RAGGED_LOWEST] or value > spec[RAGGED_HIGHEST]:
                return position, vertex, edge, ID_OUT_OF_RANGE
            position = behind
            if not implicit and column == 0:
                vertex = value
            else:
                parsed.src[edge], parsed.dst[edge] = vertex, value
                edge += 1
        column += 1
        position, commas = _skip_separators(text, position, stop)
        if commas > 1 or (commas == 1 and (position >= stop or text[position] == NEWLINE)):
            return position, vertex, edge, EMPTY_FIELD
    short = implicit and (column < skip or (stride == 2 and (column - skip) % 2 == 1))
    return position, vertex, edge, TOO_FEW_COLUMNS if short else OK


@njit(cache=True, nogil=True)
def parse_ragged(text, spec, parsed, rows):
    """Parse one vertex per line: ``vertex neighbour ...``, or (IMPLICIT) METIS lines whose number is the vertex.

    Invariant  entries 0..out[EDGES]-1 and rows 0..out[ROWS]-1 are complete; an implicit row counts blank lines too.
    Races      none; blocks of an implicit file are parsed in order, because FIRST_ROW comes from the block before.
    Work       O(bytes), one pass, no allocation. The outputs hold half an entry per byte of ``text``.
    """
    text, spec, parsed = borrow(text), borrow(spec), borrow(parsed)  # or every line's call would count references
    stop, implicit, out = text.size, spec[IMPLICIT] != 0, parsed.out
    row, edge, position, status = 0, 0, 0, OK
    out[HARD] = 0
    while position < stop:
        position, commas = _skip_separators(text, position, stop)
        if commas > 0:
            status = EMPTY_FIELD
            break
        blank = position >= stop or text[position] == NEWLINE
        if not blank and (text[position] == HASH or text[position] == PERCENT):
            position = _skip_line(text, position, stop) + 1
            continue
        if blank and (not implicit or spec[FIRST_ROW] + row >= spec[ROW_LIMIT]):
            position += 1
            continue
        if spec[FIRST_ROW] + row >= spec[ROW_LIMIT]:
            status = TOO_MANY_ROWS
            break
        vertex = spec[FIRST_ROW] + row + 1
        position, vertex, edge, status = _parse_neighbours(text, position, stop, spec, vertex, edge, parsed)
        if status != OK:
            break
        rows[row] = vertex
        row += 1
        position += 1
    out[STATUS], out[ROWS], out[POSITION], out[EDGES] = status, row, position, edge
