"""JAX on the processor: the same recursion written with matrices, mapped over the samples, compiled by XLA."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.speed.case import Case, Workload, batch_workloads, load
from dynid import Robot


class Jax:
    """``jit(vmap(regressor))`` and the gradient of a weighted sum of its base columns, in float64."""

    name = "JAX, processor"

    def measure(self, case: Case) -> dict[Workload, float]:
        """Measure the seconds per sample."""
        jax = load("jax", "jax")
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_platforms", "cpu")
        one = _regressor(jax, case.robot)
        states = case.states(case.few)
        columns = np.array(case.base_columns)
        batch = jax.jit(jax.vmap(one))

        def weighted(weights: Any, q: Any, v: Any, a: Any) -> Any:
            return (weights * one(q, v, a)[:, columns]).sum()

        gradient = jax.jit(jax.vmap(jax.grad(weighted, argnums=(1, 2, 3))))
        weights = np.ones((case.few, case.robot.dof, len(columns)))
        seconds = _processor_time(case, lambda: batch(*states).block_until_ready())
        return {
            "regressor streamed": seconds,
            "regressor dense": seconds,
            **batch_workloads("regressor", seconds),
            "base regressor VJP": _processor_time(case, lambda: jax.block_until_ready(gradient(weights, *states))),
        }


def _processor_time(case: Case, function: Callable[[], object]) -> float:
    """Measure the seconds per sample of all threads, because XLA works in threads of its own."""
    function()
    times = []
    for _ in range(case.repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times) / case.few


def _regressor(jax: Any, robot: Robot) -> Callable[[Any, Any, Any], Any]:
    """Make the regressor (n, 10 n) of one state; motions and joint twists are carried forward from body to body."""
    jnp = jax.numpy

    def hat(v: Any) -> Any:
        return jnp.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])

    def tensor(v: Any) -> Any:
        return jnp.array([[v[0], v[1], v[2], 0, 0, 0], [0, v[0], 0, v[1], v[2], 0], [0, 0, v[0], 0, v[1], v[2]]])

    def wrench(w: Any, dw: Any, a: Any) -> Any:
        moment = tensor(dw) + hat(w) @ tensor(w)
        force = jnp.concatenate([jnp.zeros((3, 6)), hat(dw) + hat(w) @ hat(w), a[:, None]], axis=1)
        return jnp.concatenate([force, jnp.concatenate([moment, -hat(a), jnp.zeros((3, 1))], axis=1)], axis=0)

    def step(body: Any, q: Any) -> tuple[Any, Any]:
        axis, skewed = jnp.array(body.axis), hat(body.axis)
        turn = jnp.eye(3)
        if not body.is_prismatic:
            turn = turn + jnp.sin(q) * skewed + (1.0 - jnp.cos(q)) * skewed @ skewed
        R = jnp.array(body.R_parent_joint) @ turn
        p = jnp.array(body.p_parent_joint) + (jnp.array(body.R_parent_joint) @ axis * q if body.is_prismatic else 0.0)
        return R, p

    def motion(body: Any, q: Any, v: Any, acc: Any, before: Any) -> Any:
        R, p = step(body, q)
        axis, (w, dw, a, twists) = jnp.array(body.axis), before
        w_new, dw_new = R.T @ w, R.T @ dw
        a_new = R.T @ (a + jnp.cross(dw, p) + jnp.cross(w, jnp.cross(w, p)))
        moved = {i: (R.T @ (linear + jnp.cross(angular, p)), R.T @ angular) for i, (linear, angular) in twists.items()}
        if body.is_prismatic:
            return w_new, dw_new, a_new + 2 * jnp.cross(w_new, axis * v) + axis * acc, moved
        return w_new + axis * v, dw_new + jnp.cross(w_new, axis * v) + axis * acc, a_new, moved

    def regressor(q: Any, v: Any, acc: Any) -> Any:
        zero = jnp.zeros(3)
        states: list[Any] = []
        rows: list[list[Any]] = [[jnp.zeros(10)] * robot.dof for _ in range(robot.dof)]
        for j, body in enumerate(robot.bodies):
            before = (zero, zero, -jnp.array(robot.gravity), {}) if body.parent < 0 else states[body.parent]
            w, dw, a, twists = motion(body, q[j], v[j], acc[j], before)
            axis = jnp.array(body.axis)
            twists[j] = (axis, zero) if body.is_prismatic else (zero, axis)
            states.append((w, dw, a, twists))
            A = wrench(w, dw, a)
            for i, twist in twists.items():
                rows[i][j] = jnp.concatenate(twist) @ A
        return jnp.stack([jnp.concatenate(row) for row in rows])

    return regressor
