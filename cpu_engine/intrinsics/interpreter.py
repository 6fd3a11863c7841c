"""Python's own objects as compiled code sees them: addresses, read through the C interface of CPython 3.10 to 3.12.

Only what reads and neither counts references, nor raises, nor asks which thread it is: then several threads may read as
long as no thread changes what they read (see adjacency.py). ``type_of`` first, because only of numbers, texts, tuples
of them and dicts themselves (no subclass) is that true. There is no Python body: without the JIT they must not be
called.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

intrinsic: Any = extending.intrinsic  # its first argument is not the caller's, which type checkers do not know
_INT, _WORD, _BYTES = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
_TYPE_AT = object.__basicsize__ - 8  # the last word of what every object begins with
_READ, _KEEP, _DATA = 0, 3, 1  # of llvm.prefetch


def _call(builder, name, result, arguments):
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


@intrinsic
def type_of(typingctx, thing):
    """The address of an object's type."""

    def codegen(context, builder, signature, args):
        at = builder.inttoptr(builder.add(args[0], _WORD(_TYPE_AT)), _WORD.as_pointer())
        return builder.load(at)

    return types.int64(types.int64), codegen


@intrinsic
def next_of_dict(typingctx, mapping, position):
    """The entry of a dict from ``position`` on: (whether there is one, where the next begins, its key, its value)."""

    def codegen(context, builder, signature, args):
        place = cgutils.alloca_once(builder, _WORD)
        key, value = cgutils.alloca_once(builder, _BYTES), cgutils.alloca_once(builder, _BYTES)
        builder.store(args[1], place)
        found = _call(builder, "PyDict_Next", _INT, [builder.inttoptr(args[0], _BYTES), place, key, value])
        answer = [
            builder.sext(found, _WORD), builder.load(place),
            *(builder.ptrtoint(builder.load(pointer), _WORD) for pointer in (key, value)),
        ]  # fmt: skip
        return context.make_tuple(builder, signature.return_type, answer)

    return types.UniTuple(types.int64, 4)(types.int64, types.int64), codegen


def _word_from(name):
    """An intrinsic that hands one object to a function of CPython and returns its answer, a word."""

    @intrinsic
    def ask(typingctx, thing):
        def codegen(context, builder, signature, args):
            return _call(builder, name, _WORD, [builder.inttoptr(args[0], _BYTES)])

        return types.int64(types.int64), codegen

    return ask


size_of_dict = _word_from("PyDict_Size")  # entries of a dict
size_of_tuple = _word_from("PyTuple_Size")  # members of a tuple
# The hash of a number, a text or a tuple of them; of a key somewhere, so that texts have theirs noted already.
hash_of = _word_from("PyObject_Hash")


@intrinsic
def member_of_tuple(typingctx, thing, place):
    """The member at a place, which must be there."""

    def codegen(context, builder, signature, args):
        answer = _call(builder, "PyTuple_GetItem", _BYTES, [builder.inttoptr(args[0], _BYTES), args[1]])
        return builder.ptrtoint(answer, _WORD)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def whole_number(typingctx, thing):
    """(value, 0) of an int, (-1, not 0) if it has more than 64 bits."""

    def codegen(context, builder, signature, args):
        overflow = cgutils.alloca_once(builder, _INT)
        thing = builder.inttoptr(args[0], _BYTES)
        value = _call(builder, "PyLong_AsLongLongAndOverflow", _WORD, [thing, overflow])
        answer = [value, builder.sext(builder.load(overflow), _WORD)]
        return context.make_tuple(builder, signature.return_type, answer)

    return types.UniTuple(types.int64, 2)(types.int64), codegen


@intrinsic
def prefetch_object(typingctx, thing):
    """Begin to load an object's first bytes."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], _BYTES)
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, _INT, _INT, _INT])
        function = builder.module.declare_intrinsic("llvm.prefetch", [_BYTES], kind)
        builder.call(function, [pointer, _INT(_READ), _INT(_KEEP), _INT(_DATA)])
        return context.get_dummy_value()

    return types.none(types.int64), codegen
