"""Lane vectors: one machine operation on many small integers at once, inside kernels.

``load(array, index, n)`` reads ``n`` neighbouring elements as a vector whose lanes have the
array's integer type; ``+ - & | ^ ~`` and the functions below work on all lanes, wrapping round
like the type does. LLVM splits a vector wider than the machine's registers into several
instructions, so one kernel serves AVX-512, AVX2, SSE and NEON; :data:`REGISTER_BYTES` says how
wide they are here. When the JIT is off NumPy arrays play the vectors.

A vector must be made, used and dropped within a kernel: Python never sees one.
"""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, overload, register_model


def _register_bytes() -> int:
    if config.CPU_FEATURES is not None:
        features = {f[1:] for f in config.CPU_FEATURES.split(",") if f.startswith("+")}
    elif config.CPU_NAME == "generic":
        features = set()
    else:
        features = {name for name, on in llvm.get_host_cpu_features().items() if on}
    if "avx512bw" in features:
        return 64
    return 32 if "avx2" in features else 16


REGISTER_BYTES: int = _register_bytes()


class Lanes(types.Type):
    """Numba type of a vector of ``n`` integers of type ``dtype``."""

    def __init__(self, dtype: Any, n: int) -> None:
        self.dtype = dtype
        self.n = n
        super().__init__(f"Lanes({dtype}, {n})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Lanes) -> None:
        element = ir.IntType(fe_type.dtype.bitwidth)
        super().__init__(dmm, fe_type, ir.VectorType(element, fe_type.n))


def _binary(op: Any, instruction: str) -> None:
    @infer_global(op)
    class _Typing(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 2 and isinstance(args[0], Lanes) and args[0] == args[1]:
                return signature(args[0], *args)
            return None

    @lower_builtin(op, Lanes, Lanes)
    def _lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args)


for _op, _instruction in (
    (operator.add, "add"),
    (operator.sub, "sub"),
    (operator.and_, "and_"),
    (operator.or_, "or_"),
    (operator.xor, "xor"),
):
    _binary(_op, _instruction)


@infer_global(operator.invert)
class _InvertTyping(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Lanes):
            return signature(args[0], args[0])
        return None


@lower_builtin(operator.invert, Lanes)
def _lower_invert(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.not_(args[0])


def _constant(kind: Any, value: int) -> ir.Constant:
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def _width(kind: Any) -> int:
    return int(kind.element.width if isinstance(kind, ir.VectorType) else kind.width)


def _per_lane(builder: Any, name: str, args: Any) -> Any:
    """Call an LLVM intrinsic that exists for integers and for vectors of them."""
    kind = args[0].type
    vector = isinstance(kind, ir.VectorType)
    suffix = f"v{kind.count}i{kind.element.width}" if vector else f"i{kind.width}"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * len(args)), f"llvm.{name}.{suffix}"
    )
    return builder.call(function, args)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any, to: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), to.as_pointer())


def _splat(builder: Any, scalar: Any, vector: ir.VectorType) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    i32 = ir.IntType(32)
    one = builder.insert_element(undefined, scalar, ir.Constant(i32, 0))
    zeros = ir.Constant(ir.VectorType(i32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, undefined, zeros)


# -- memory ---------------------------------------------------------------------------------------


def load(array: Any, index: Any, n: int) -> Any:
    """``array[index : index + n]`` as a vector; ``n`` is a constant of the kernel."""
    return array[index : index + n].copy()


@intrinsic(prefer_literal=True)
def _load(typingctx: Any, array: Any, index: Any, n: Any) -> Any:
    lanes = Lanes(array.dtype, n.literal_value)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to = context.get_value_type(lanes)
        at = _pointer(context, builder, sig.args[0], args[0], args[1], to)
        return builder.load(at, align=array.dtype.bitwidth // 8)

    return lanes(array, index, n), codegen


@overload(load, prefer_literal=True, inline="always")
def _ov_load(array, index, n):
    return lambda array, index, n: _load(array, index, n)


def store(array: Any, index: Any, v: Any) -> None:
    """Write a vector to ``array[index:]``; the array has the type of the lanes."""
    array[index : index + len(v)] = v


@intrinsic
def _store(typingctx: Any, array: Any, index: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        at = _pointer(context, builder, sig.args[0], args[0], args[1], args[2].type)
        builder.store(args[2], at, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, index, v), codegen


@overload(store, inline="always")
def _ov_store(array, index, v):
    return lambda array, index, v: _store(array, index, v)


def store_narrow(array: Any, index: Any, v: Any) -> None:
    """Write a vector to ``array[index:]``, each lane cut to the array's narrower type."""
    array[index : index + len(v)] = v.astype(array.dtype)


@intrinsic
def _store_narrow(typingctx: Any, array: Any, index: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = array.dtype.bitwidth
        to = ir.VectorType(ir.IntType(bits), v.n)
        value = args[2] if v.dtype.bitwidth == bits else builder.trunc(args[2], to)
        at = _pointer(context, builder, sig.args[0], args[0], args[1], to)
        builder.store(value, at, align=bits // 8)
        return context.get_dummy_value()

    return types.void(array, index, v), codegen


@overload(store_narrow, inline="always")
def _ov_store_narrow(array, index, v):
    return lambda array, index, v: _store_narrow(array, index, v)


def store_sum(out: Any, index: Any, base: Any, array: Any, at: Any, n: int) -> None:
    """``out[index : index + n] = base + array[at : at + n]``, taken as signed integers."""
    out[index : index + n] = base + array[at : at + n].astype(np.int64)


@intrinsic(prefer_literal=True)
def _store_sum(typingctx: Any, out: Any, index: Any, base: Any, array: Any, at: Any, n: Any) -> Any:
    count = n.literal_value
    target = out.dtype
    # additions wrap round in integers of the target's width; floats are converted at the end
    bits = 64 if isinstance(target, types.Float) else target.bitwidth

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        narrow = ir.VectorType(ir.IntType(array.dtype.bitwidth), count)
        wide = ir.VectorType(ir.IntType(bits), count)
        source = _pointer(context, builder, sig.args[3], args[3], args[4], narrow)
        value = builder.load(source, align=array.dtype.bitwidth // 8)
        if array.dtype.bitwidth < bits:
            value = builder.sext(value, wide)
        elif array.dtype.bitwidth > bits:
            value = builder.trunc(value, wide)
        scalar = context.cast(builder, args[2], sig.args[2], types.Integer.from_bitwidth(bits))
        value = builder.add(value, _splat(builder, scalar, wide))
        if isinstance(target, types.Float):
            value = builder.sitofp(value, ir.VectorType(context.get_value_type(target), count))
        place = _pointer(context, builder, sig.args[0], args[0], args[1], value.type)
        builder.store(value, place, align=target.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(out, index, base, array, at, n), codegen


@overload(store_sum, prefer_literal=True, inline="always")
def _ov_store_sum(out, index, base, array, at, n):
    return lambda out, index, base, array, at, n: _store_sum(out, index, base, array, at, n)


def splat(like: Any, value: Any) -> Any:
    """A vector of the type of ``like`` with ``value`` in each lane."""
    return np.full_like(like, value)


@intrinsic
def _splat_like(typingctx: Any, like: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if not isinstance(like, Lanes):
            return context.cast(builder, args[1], sig.args[1], like)
        scalar = context.cast(builder, args[1], sig.args[1], like.dtype)
        return _splat(builder, scalar, args[0].type)

    return like(like, value), codegen


@overload(splat, inline="always")
def _ov_splat(like, value):
    return lambda like, value: _splat_like(like, value)


def load_each(array: Any, index: Any, stride: Any, n: int, count: int) -> Any:
    """A tuple of ``count`` vectors of ``n`` lanes, ``stride`` elements apart; numbers if n is 1."""
    if n == 1:
        return tuple(array[index + i * stride] for i in range(count))
    return tuple(load(array, index + i * stride, n) for i in range(count))


@intrinsic(prefer_literal=True)
def _load_each(typingctx: Any, array: Any, index: Any, stride: Any, n: Any, count: Any) -> Any:
    lanes = array.dtype if n.literal_value == 1 else Lanes(array.dtype, n.literal_value)
    every: Any = types.UniTuple(lanes, count.literal_value)  # type: ignore[attr-defined]

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to = context.get_value_type(lanes)
        found = []
        at = context.cast(builder, args[1], sig.args[1], types.intp)
        step = context.cast(builder, args[2], sig.args[2], types.intp)
        for _ in range(every.count):
            pointer = _pointer(context, builder, sig.args[0], args[0], at, to)
            found.append(builder.load(pointer, align=array.dtype.bitwidth // 8))
            at = builder.add(at, step)
        return context.make_tuple(builder, every, found)

    return every(array, index, stride, n, count), codegen


@overload(load_each, prefer_literal=True, inline="always")
def _ov_load_each(array, index, stride, n, count):
    return lambda array, index, stride, n, count: _load_each(array, index, stride, n, count)


def store_each(array: Any, index: Any, stride: Any, values: Any) -> None:
    """Write a tuple of vectors (or numbers), ``stride`` elements apart."""
    for i, v in enumerate(values):
        array[index + i * stride : index + i * stride + v.size] = v


@intrinsic
def _store_each(typingctx: Any, array: Any, index: Any, stride: Any, values: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        at = context.cast(builder, args[1], sig.args[1], types.intp)
        step = context.cast(builder, args[2], sig.args[2], types.intp)
        for value in cgutils.unpack_tuple(builder, args[3]):
            pointer = _pointer(context, builder, sig.args[0], args[0], at, value.type)
            builder.store(value, pointer, align=array.dtype.bitwidth // 8)
            at = builder.add(at, step)
        return context.get_dummy_value()

    return types.void(array, index, stride, values), codegen


@overload(store_each, inline="always")
def _ov_store_each(array, index, stride, values):
    return lambda array, index, stride, values: _store_each(array, index, stride, values)


def store_bits(array: Any, index: Any, v: Any) -> None:
    """Write a bit for each lane, set where it is not 0, to bytes from ``array[index]`` on."""
    bits = np.packbits(v != 0, bitorder="little")
    array[index : index + len(bits)] = bits


@intrinsic
def _store_bits(typingctx: Any, array: Any, index: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = builder.icmp_unsigned("!=", args[2], _constant(args[2].type, 0))
        bits = builder.bitcast(bits, ir.IntType(v.n))
        bits = builder.zext(bits, ir.IntType(8)) if v.n < 8 else bits
        at = _pointer(context, builder, sig.args[0], args[0], args[1], bits.type)
        builder.store(bits, at, align=1)
        return context.get_dummy_value()

    return types.void(array, index, v), codegen


@overload(store_bits, inline="always")
def _ov_store_bits(array, index, v):
    return lambda array, index, v: _store_bits(array, index, v)


def load_bits(array: Any, index: Any, like: Any) -> Any:
    """All bits of a lane set where :func:`store_bits` wrote one; a vector like ``like``."""
    bits = np.unpackbits(array[index : index + -(-len(like) // 8)], bitorder="little")
    return np.where(bits[: len(like)] != 0, ~like.dtype.type(0), like.dtype.type(0))


@intrinsic
def _load_bits(typingctx: Any, array: Any, index: Any, like: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        at = _pointer(context, builder, sig.args[0], args[0], args[1], ir.IntType(max(like.n, 8)))
        bits = builder.load(at, align=1)
        bits = builder.trunc(bits, ir.IntType(like.n)) if like.n < 8 else bits
        lanes = builder.bitcast(bits, ir.VectorType(ir.IntType(1), like.n))
        return builder.sext(lanes, args[2].type)

    return like(array, index, like), codegen


@overload(load_bits, inline="always")
def _ov_load_bits(array, index, like):
    return lambda array, index, like: _load_bits(array, index, like)


# -- lanes to lanes -------------------------------------------------------------------------------
#
# These, and splat, take a single uint64 as a vector of one lane.


def double(v: Any) -> Any:
    """Each lane shifted left by one bit (x86 has no shift of bytes; an addition does it)."""
    return v + v


@overload(double, inline="always")
def _ov_double(v):
    return lambda v: v + v


def top_bit(v: Any) -> Any:
    """The highest bit of each lane, moved to the lowest place."""
    return v >> v.dtype.type(v.dtype.itemsize * 8 - 1)


@intrinsic
def _top_bit(typingctx: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = args[0].type
        return builder.lshr(args[0], _constant(kind, _width(kind) - 1))

    return v(v), codegen


@overload(top_bit, inline="always")
def _ov_top_bit(v):
    return lambda v: _top_bit(v)


def double_in(v: Any, lower: Any) -> Any:
    """Each lane shifted left by one bit, the highest bit of ``lower`` moving in."""
    return (v + v) | top_bit(lower)


@intrinsic
def _double_in(typingctx: Any, v: Any, lower: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _per_lane(builder, "fshl", [args[0], args[1], _constant(args[0].type, 1)])

    return v(v, lower), codegen


@overload(double_in, inline="always")
def _ov_double_in(v, lower):
    return lambda v, lower: _double_in(v, lower)


def popcount(v: Any) -> Any:
    """Number of set bits of each lane, in that lane."""
    return np.bitwise_count(v).astype(v.dtype)


@intrinsic
def _popcount(typingctx: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _per_lane(builder, "ctpop", args)

    return v(v), codegen


@overload(popcount, inline="always")
def _ov_popcount(v):
    return lambda v: _popcount(v)


def less(a: Any, b: Any) -> Any:
    """All bits of a lane set where ``a < b`` as unsigned integers, else none."""
    return np.where(a < b, ~a.dtype.type(0), a.dtype.type(0))


@intrinsic
def _less(typingctx: Any, a: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.sext(builder.icmp_unsigned("<", args[0], args[1]), args[0].type)

    return a(a, b), codegen


@overload(less, inline="always")
def _ov_less(a, b):
    return lambda a, b: _less(a, b)


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two unsigned integers, in each lane."""
    return np.minimum(a, b)


@intrinsic
def _smaller(typingctx: Any, a: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(builder.icmp_unsigned("<", args[0], args[1]), args[0], args[1])

    return a(a, b), codegen


@overload(smaller, inline="always")
def _ov_smaller(a, b):
    return lambda a, b: _smaller(a, b)


def choose(on: Any, a: Any, b: Any) -> Any:
    """Lanes of ``a`` where ``on`` is not 0, else of ``b``."""
    return np.where(on != 0, a, b)


@intrinsic
def _choose(typingctx: Any, on: Any, a: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = builder.icmp_unsigned("!=", args[0], _constant(args[0].type, 0))
        return builder.select(bits, args[1], args[2])

    return a(on, a, b), codegen


@overload(choose, inline="always")
def _ov_choose(on, a, b):
    return lambda on, a, b: _choose(on, a, b)


def equal(a: Any, b: Any) -> Any:
    """All bits of a lane set where both are the same, else none."""
    return np.where(a == b, ~a.dtype.type(0), a.dtype.type(0))


@intrinsic
def _equal(typingctx: Any, a: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.sext(builder.icmp_unsigned("==", args[0], args[1]), args[0].type)

    return a(a, b), codegen


@overload(equal, inline="always")
def _ov_equal(a, b):
    return lambda a, b: _equal(a, b)


def nonzero(v: Any) -> Any:
    """All bits of a lane set where it is not 0, else none."""
    return np.where(v != 0, ~v.dtype.type(0), v.dtype.type(0))


@intrinsic
def _nonzero(typingctx: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        zero = _constant(args[0].type, 0)
        return builder.sext(builder.icmp_unsigned("!=", args[0], zero), args[0].type)

    return v(v), codegen


@overload(nonzero, inline="always")
def _ov_nonzero(v):
    return lambda v: _nonzero(v)


def increment(v: Any, where: Any) -> Any:
    """1 more in each lane in which ``where`` is not 0."""
    return choose(where, v + splat(v, 1), v)


@overload(increment, inline="always")
def _ov_increment(v, where):
    return lambda v, where: choose(where, v + splat(v, 1), v)


# -- lanes to scalars -----------------------------------------------------------------------------


def match_bits(array: Any, index: Any, value: Any, n: int) -> Any:
    """Bit ``i`` is set where ``array[index + i] == value``, for ``n`` (8 to 64) elements."""
    hits = np.flatnonzero(array[index : index + n] == value).astype(np.uint64)
    return np.bitwise_or.reduce(np.uint64(1) << hits, initial=np.uint64(0))


@intrinsic(prefer_literal=True)
def _match_bits(typingctx: Any, array: Any, index: Any, value: Any, n: Any) -> Any:
    lanes = Lanes(array.dtype, n.literal_value)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to = context.get_value_type(lanes)
        at = _pointer(context, builder, sig.args[0], args[0], args[1], to)
        chars = builder.load(at, align=array.dtype.bitwidth // 8)
        scalar = context.cast(builder, args[2], sig.args[2], array.dtype)
        equal = builder.icmp_unsigned("==", chars, _splat(builder, scalar, to))
        bits = builder.bitcast(equal, ir.IntType(lanes.n))
        u64 = ir.IntType(64)
        return bits if lanes.n == 64 else builder.zext(bits, u64)

    return types.uint64(array, index, value, n), codegen


@overload(match_bits, prefer_literal=True, inline="always")
def _ov_match_bits(array, index, value, n):
    return lambda array, index, value, n: _match_bits(array, index, value, n)


def any_lane(v: Any) -> Any:
    """Is some lane not 0?"""
    return bool(np.any(v))


@intrinsic
def _any_lane(typingctx: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = builder.icmp_unsigned("!=", args[0], _constant(args[0].type, 0))
        whole = builder.bitcast(bits, ir.IntType(v.n))
        return builder.icmp_unsigned("!=", whole, ir.Constant(whole.type, 0))

    return types.boolean(v), codegen


@overload(any_lane, inline="always")
def _ov_any_lane(v):
    return lambda v: _any_lane(v)


def bit_count(x: Any) -> Any:
    """Number of set bits of one uint64, as int64."""
    return int(x).bit_count()


@intrinsic
def _bit_count(typingctx: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(context.cast(builder, args[0], sig.args[0], types.uint64))

    return types.int64(x), codegen


@overload(bit_count, inline="always")
def _ov_bit_count(x):
    return lambda x: _bit_count(x)


# -- numbers --------------------------------------------------------------------------------------


def fused(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` of three float64, rounded once."""
    return np.float64(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


@intrinsic
def _fused(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


@overload(fused, inline="always")
def _ov_fused(a, b, c):
    return lambda a, b, c: _fused(a, b, c)
