"""Cache lines by hand: a line stored past the caches, and a line asked for ahead of its use.

Numba has no words for either; these are LLVM's. They change when memory moves, never what it holds, and without the JIT
(NUMBA_DISABLE_JIT=1) the plain Python bodies are used. Where a processor has no such instruction, nothing is lost.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

LINE_BYTES = 64
_READ, _KEEP, _DATA = 0, 3, 1  # llvm.prefetch: read, keep in all caches, data


def stream_line(target, at, source, place):
    """Store 64 bytes ``source[place:]`` to ``target[at:]``, which must begin a line, without reading that line first.

    Such stores are seen by other threads only after ``settle_lines`` in the thread that made them.
    """
    count = LINE_BYTES // target.itemsize
    target[at : at + count] = source[place : place + count]


def settle_lines():
    """Make all streamed lines of this thread visible."""


def ask_for_line(array, index):
    """Ask for the line of ``array[index]``, which must exist."""


def _pointer(context, builder, array_type, array_value, index):
    array = context.make_array(array_type)(context, builder, array_value)
    return cgutils.get_item_pointer(context, builder, array_type, array, [index], wraparound=False)


@intrinsic
def _stream(typingctx, target, at, source, place):
    def codegen(context, builder, signature, args):
        bits = signature.args[0].dtype.bitwidth
        line = ir.VectorType(ir.IntType(bits), 8 * LINE_BYTES // bits).as_pointer()
        to = builder.bitcast(_pointer(context, builder, signature.args[0], args[0], args[1]), line)
        of = builder.bitcast(_pointer(context, builder, signature.args[2], args[2], args[3]), line)
        store = builder.store(builder.load(of, align=bits // 8), to, align=LINE_BYTES)
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp), codegen


@intrinsic
def _fence(typingctx):
    def codegen(context, builder, signature, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def _prefetch(typingctx, array, index):
    def codegen(context, builder, signature, args):
        word = ir.IntType(32)
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        pointer = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(prefetch, [pointer, *(ir.Constant(word, how) for how in (_READ, _KEEP, _DATA))])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@overload(stream_line)
def _overload_stream(target, at, source, place):
    return lambda target, at, source, place: _stream(target, at, source, place)  # type: ignore[call-arg]


@overload(settle_lines)
def _overload_settle():
    return lambda: _fence()  # type: ignore[call-arg]


@overload(ask_for_line)
def _overload_ask(array, index):
    return lambda array, index: _prefetch(array, index)  # type: ignore[call-arg]
