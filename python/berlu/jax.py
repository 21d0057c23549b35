"""Every activation in jnp: jit, vmap and grad of any order. SPDX-License-Identifier: MIT

XLA fuses these formulas into one pass over memory, so there is nothing for a library call to win.
Each function has its own derivative rule (custom_jvp) with the slopes of the C library, at kinks
too, and without the intermediate values that automatic differentiation would keep; the rule is made
of ordinary jnp operations, which JAX differentiates again.

    berlu.jax.berlu(x, alpha, eps, degree=4)    alpha and eps: numbers or arrays that broadcast against x
    berlu.jax.act("berlu:eps=0.1")              a function of x (and of the parameters, by name)"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple, Union

import jax
import jax.numpy as jnp

from ._act import Act, act as make_act, names, number
from ._bump import bump_polynomials

Array = Any
Values = Sequence[Array]


class _Form(NamedTuple):
    """Value, slope and the slopes by the parameters, as functions of x and the parameters."""

    params: Tuple[str, ...]
    value: Callable[[Array, Values], Array]
    slope: Callable[[Array, Values], Array]
    by_param: Callable[[Array, Values], List[Array]] = lambda x, v: []


def _horner(coefficients: Sequence[float], x: Array) -> Array:
    out: Array = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        out = out * x + c
    return out


def _berlu_form(degree: int) -> _Form:
    m = degree // 2
    bump, tilt = bump_polynomials(m)
    height = math.comb(2 * m, m) / 4**m

    def half_depth(x: Array, eps: Array) -> Array:
        depth = eps - jnp.where(x < 0, -x, x)
        return jnp.where(depth < 0, 0, depth) / (2 * eps)  # a choice: half of maximum()'s slope lies on either side

    def unit_bump(x: Array, eps: Array) -> Array:
        r = half_depth(x, eps)
        return eps * r ** (m + 1) * _horner(bump, 1 - 2 * r)

    def value(x: Array, v: Values) -> Array:
        return jnp.where(x < 0, v[0] * jnp.where(x < 0, x, 0), x) + (1 - v[0]) * unit_bump(x, v[1])

    def slope(x: Array, v: Values) -> Array:
        r = half_depth(x, v[1])
        t = (1 - v[0]) * r**m * _horner(tilt, 1 - 2 * r)
        return jnp.where(x < 0, v[0] + t, 1 - t)

    def by_param(x: Array, v: Values) -> List[Array]:
        r = half_depth(x, v[1])
        return [jnp.where(x < 0, x, 0) - unit_bump(x, v[1]), (1 - v[0]) * height / 2 * (4 * r * (1 - r)) ** m]

    return _Form(("alpha", "eps"), value, slope, by_param)


def _smelu_form() -> _Form:
    knee = _berlu_form(2)
    return _Form(
        ("beta",),
        lambda x, v: knee.value(jnp.where(x < -1e30, -1e30, x), (0.0, v[0])),  # -inf gives 0
        lambda x, v: knee.slope(x, (0.0, v[0])),
        lambda x, v: knee.by_param(x, (0.0, v[0]))[1:],
    )


def _below(x: Array) -> Array:
    return jnp.where(x > 0, 0, x)


def _above(x: Array) -> Array:
    return jnp.where(x <= 0, 0, x)


def _finite_below(x: Array, alpha: Array) -> Array:
    """min(x, 0) / alpha, finite, so that its product with e^z is 0 at -inf."""
    z = jnp.where(x > 0, 0, jnp.where(x < -1e30, -1e30, x)) / alpha
    return jnp.where(z < -800, -800, z)  # e^-800 is 0 in double


def _clamp(low: float, high: float) -> _Form:
    def slope(x: Array, v: Values) -> Array:
        flat = (x <= low) & math.isfinite(low) | (x >= high) & math.isfinite(high)
        return _keep_nan(x, ~flat, 1.0)

    return _Form((), lambda x, v: jnp.clip(x, low, high), slope)


def _keep_nan(x: Array, inside: Array, slope: float) -> Array:
    return jnp.where(jnp.isnan(x), x, jnp.where(inside, slope, 0.0).astype(x.dtype))


def _leaky() -> _Form:
    return _Form(
        ("alpha",),
        lambda x, v: jnp.where(x > 0, x, v[0] * _below(x)),
        lambda x, v: jnp.where(x > 0, 1.0, jnp.where(x <= 0, v[0], x)),
        lambda x, v: [_below(x)],
    )


def _limits(value: Callable[[Array], Array], slope: Callable[[Array], Array]) -> _Form:
    """x times a step from 0 to 1: the given formulas where they are computed without overflow, and
    beyond, where the step is 0 or 1 in double too, 0 and x."""
    far = 800  # e^-800 is 0 in double

    def choose(x: Array, inside: Callable[[Array], Array], right: Array) -> Array:
        near = jnp.where((x < -far) | (x > far), 0, x)
        return jnp.where(x < -far, -0.0, jnp.where(x > far, right, inside(near)))

    return _Form((), lambda x, v: choose(x, value, x), lambda x, v: choose(x, slope, 1))


def _logistic_slope(x: Array) -> Array:
    return jax.nn.sigmoid(x) * jax.nn.sigmoid(-x)


def _sigmoid_slope(x: Array) -> Array:
    s = jax.nn.sigmoid(x)
    return s * (1 + x * (1 - s))


def _mish_slope(x: Array) -> Array:
    t = jnp.tanh(jax.nn.softplus(x))
    return t + x * jax.nn.sigmoid(x) * (1 - t * t)


def _gelu_slope(x: Array) -> Array:
    return jax.scipy.special.ndtr(x) + x * jnp.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))


def _gelu_tanh_slope(x: Array) -> Array:
    scale, cube = math.sqrt(2 / math.pi), 0.044715
    s = jax.nn.sigmoid(2 * scale * x * (1 + cube * x * x))
    return s + 2 * x * scale * (1 + 3 * cube * x * x) * s * (1 - s)


_SELU, _SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
_INF = math.inf
_FORMS: Dict[str, _Form] = {
    "identity": _Form((), lambda x, v: x, lambda x, v: jnp.where(jnp.isnan(x), x, jnp.ones_like(x))),
    "relu": _clamp(0, _INF),
    "relu6": _clamp(0, 6),
    "hard_tanh": _clamp(-1, 1),
    "hard_sigmoid": _Form(
        (), lambda x, v: jnp.clip(x + 3, 0, 6) / 6, lambda x, v: _keep_nan(x, (x > -3) & (x < 3), 1 / 6)
    ),
    "hard_swish": _Form(
        (),
        lambda x, v: jnp.where(x >= 3, x, jnp.clip(x, -3, 3) * (jnp.clip(x, -3, 3) + 3) / 6),
        lambda x, v: jnp.where(x <= -3, 0.0, jnp.where(x >= 3, 1.0, x / 3 + 0.5)),
    ),
    "leaky_relu": _leaky(),
    "prelu": _leaky(),
    "elu": _Form(
        ("alpha",),
        lambda x, v: jnp.where(x > 0, x, v[0] * jnp.expm1(_below(x))),
        lambda x, v: jnp.where(x > 0, 1.0, v[0] * jnp.exp(_below(x))),
        lambda x, v: [jnp.expm1(_below(x))],
    ),
    "celu": _Form(
        ("alpha",),
        lambda x, v: jnp.where(x > 0, x, v[0] * jnp.expm1(_finite_below(x, v[0]))),
        lambda x, v: jnp.where(x > 0, 1.0, jnp.exp(_finite_below(x, v[0]))),
        lambda x, v: [jnp.expm1(_finite_below(x, v[0])) - _finite_below(x, v[0]) * jnp.exp(_finite_below(x, v[0]))],
    ),
    "selu": _Form(
        (),
        lambda x, v: _SELU * jnp.where(x > 0, x, _SELU_ALPHA * jnp.expm1(_below(x))),
        lambda x, v: _SELU * jnp.where(x > 0, 1.0, _SELU_ALPHA * jnp.exp(_below(x))),
    ),
    "gelu": _limits(functools.partial(jax.nn.gelu, approximate=False), _gelu_slope),
    "gelu_tanh": _limits(functools.partial(jax.nn.gelu, approximate=True), _gelu_tanh_slope),
    "silu": _limits(jax.nn.silu, _sigmoid_slope),
    "mish": _limits(lambda x: x * jnp.tanh(jax.nn.softplus(x)), _mish_slope),
    "smelu": _smelu_form(),
    "tanh": _Form((), lambda x, v: jnp.tanh(x), lambda x, v: 4 * _logistic_slope(2 * x)),
    "sigmoid": _Form((), lambda x, v: jax.nn.sigmoid(x), lambda x, v: _logistic_slope(x)),
    "softplus": _Form((), lambda x, v: jax.nn.softplus(x), lambda x, v: jax.nn.sigmoid(x)),
    "quick_gelu": _limits(lambda x: x * jax.nn.sigmoid(1.702 * x), lambda x: _sigmoid_slope(1.702 * x)),
    "relu2": _Form((), lambda x, v: _above(x) ** 2, lambda x, v: 2 * _above(x)),
}


@functools.lru_cache(maxsize=None)
def _rule(name: str, degree: int) -> Tuple[Tuple[str, ...], Callable[..., Array]]:
    """The parameters of a name, and its function of x and all of them with the derivative rule."""
    form = _berlu_form(degree) if name == "berlu" else _FORMS[name]

    @jax.custom_jvp
    def function(x: Array, *v: Array) -> Array:
        return form.value(x, v)

    @function.defjvp
    def rule(primals: Tuple[Array, ...], tangents: Tuple[Array, ...]) -> Tuple[Array, Array]:
        x, *v = primals
        tangent = form.slope(x, v) * tangents[0]
        for d, t in zip(form.by_param(x, v), tangents[1:]):
            tangent = tangent + d * t
        return function(*primals), tangent

    return form.params, function


def _call(name: str, x: Array, degree: int, values: Dict[str, Array]) -> Array:
    params, function = _rule(name, degree)
    x = jnp.asarray(x)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise TypeError(f"berlu: x is {x.dtype}; it must be a floating-point array")
    wide = jnp.promote_types(x.dtype, jnp.float32)
    return function(x.astype(wide), *(_parameter(name, key, values[key], x, wide) for key in params)).astype(x.dtype)


def _parameter(name: str, key: str, value: Array, x: Array, dtype: Any) -> Array:
    """A parameter in x's wide dtype. A number passes the library's own check of its range; in an
    array a width that is not positive is a kink, as everywhere in berlu."""
    if isinstance(value, (int, float)):
        make_act(f"{name}:{key}={number(value)}")
    p = jnp.asarray(value, dtype)
    if jnp.broadcast_shapes(p.shape, x.shape) != x.shape:
        raise ValueError(f"berlu: {key} has shape {p.shape}, which does not fit x of shape {x.shape}")
    return jnp.maximum(p, 2.0**-60) if key in ("eps", "beta") else p


def act(spec: Union[str, Act]) -> Callable[..., Array]:
    """The function of a spec. Parameters may be given by name and are differentiated like any
    argument.

    >>> import berlu.jax, jax.numpy as jnp
    >>> f = berlu.jax.act("prelu")
    >>> float(f(jnp.array(-2.0))), float(f(jnp.array(-2.0), alpha=0.5))
    (-0.5, -1.0)
    """
    activation = make_act(spec)
    if activation.name not in names() or "scale=" in activation.spec or "center=" in activation.spec:
        raise ValueError(f"berlu: {activation.spec}: berlu.jax has the named activations without scale and center")
    own = {key: p.value for key, p in activation.parameters.items()}
    degree = int(own.pop("degree", 2))

    def function(x: Array, **parameters: Array) -> Array:
        unknown = set(parameters) - set(own)
        if unknown:
            raise TypeError(f"berlu: {activation.name} has no parameter '{sorted(unknown)[0]}'")
        return _call(activation.name, x, degree, {**own, **parameters})

    function.__name__ = function.__qualname__ = activation.name
    return function


def _named(name: str) -> Callable[..., Array]:
    plain = make_act(name)
    keys = list(plain.parameters)

    def function(x: Array, *args: Array, **parameters: Array) -> Array:
        values = {**{key: p.value for key, p in plain.parameters.items()}, **dict(zip(keys, args)), **parameters}
        if len(args) > len(keys) or set(values) - set(keys) or set(keys[: len(args)]) & set(parameters):
            raise TypeError(f"berlu: {name} takes {', '.join(keys) or 'no parameter'}, each once")
        degree = number(values.pop("degree", 2))
        if "degree" in keys:
            make_act(f"{name}:degree={degree}")  # the library's own check of the range
        return _call(name, x, int(degree), values)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{plain.about}.

    >>> import berlu, berlu.jax, jax.numpy as jnp
    >>> bool(abs(berlu.jax.{name}(jnp.array(1.5)) - berlu.act("{name}").value(1.5)) < 1e-6)
    True
    """
    return function


def __getattr__(name: str) -> Callable[..., Array]:
    if name.startswith("_") or name not in names():
        raise AttributeError(f"module 'berlu.jax' has no attribute '{name}'")
    function = globals()[name] = _named(name)
    return function


def __dir__() -> List[str]:
    return sorted({"act", *names()})
