"""The picture that opens a report: errors of every joint as bars, and the robot as a stick figure."""

from __future__ import annotations

import numpy as np

from dynid.array_types import Floats
from dynid.identification.validation import Validation
from dynid.report.html_blocks import Drawing, Shape
from dynid.report.replay import body_points
from dynid.robot.model import Robot

MODELS = ("prior", "plain", "rich")
"""Models whose errors are the bars of each joint, from left to right; also names of the colours."""
VIEW = np.array([[0.72, -0.69, 0.0], [0.25, 0.26, 0.93]])
"""Directions to the right and upwards of the drawing in the root frame (2, 3), a view from the side and above."""


def error_bars(check: Validation) -> Drawing:
    """Draw the held-out errors of the prior, the plain and the rich model, joint by joint and of all joints.

    Lengths are in units of the drawing: 70 wide for each joint, bars 18 wide and at most 150 high above 170.
    """
    columns = (check.prior_per_joint, check.plain_per_joint, check.per_joint)
    of_all = (check.prior_error, check.plain_error, check.relative_error)
    errors = np.vstack([np.nan_to_num(np.column_stack(columns)), of_all])
    names = [*check.joint_names, "all"]
    top = float(np.minimum(errors, 100.0).max()) or 1.0
    shapes: list[Shape] = []
    for j, (name, row) in enumerate(zip(names, errors, strict=True)):
        for k, (model, error) in enumerate(zip(MODELS, row, strict=True)):
            height = 150.0 * min(error / top, 1.0)
            x = 70.0 * j + 6.0 + 20.0 * k
            title = f"{name}: {model} {error:.2f} %"
            digits = 1 if error < 9.95 else 0
            shapes.append(Shape("rect", (x, 170.0 - height, 18.0, height), model, title))
            shapes.append(Shape("text", (x + 9.0, 166.0 - height), "", f"{error:.{digits}f}"))
        shapes.append(Shape("text", (70.0 * j + 35.0, 186.0), "", name))
    legend = [Shape("text", (35.0 + 70.0 * k, 202.0), model, model) for k, model in enumerate(MODELS)]
    label = "held-out error of every joint in percent: prior, plain and rich model; bars end at 100 %"
    return Drawing(label, 70.0 * len(names), 208.0, (*shapes, *legend))


def widest_poses(robot: Robot, q: Floats) -> Drawing:
    """Draw the robot as a stick figure in the three poses of a motion q (N, n) that are farthest from each other.

    The first pose is the one farthest from the mean, each further one the farthest from those before.
    """
    rows = np.unique(np.linspace(0, len(q) - 1, 400).astype(int))  # of the whole motion, but not all of it
    upwards = -1.0 if robot.gravity[2] > 0.0 else 1.0  # of a robot that hangs, the z axis points down
    points = body_points(robot, q[rows]) @ (VIEW * upwards).T  # (rows, n + 1, 2)
    flat = points.reshape(len(rows), -1)
    chosen = [int(np.argmax(((flat - flat.mean(axis=0)) ** 2).sum(axis=1)))]
    while len(chosen) < 3:
        squares = np.min([((flat - flat[k]) ** 2).sum(axis=1) for k in chosen], axis=0)
        chosen.append(int(np.argmax(squares)))
    low = points[chosen].min(axis=(0, 1))
    high = points[chosen].max(axis=(0, 1))
    scale = 280.0 / (float((high - low).max()) or 1.0)
    shapes = []
    for style, k in zip(MODELS, chosen, strict=True):  # the colours alone
        at = 10.0 + scale * (points[k] - low)
        at[:, 1] = 20.0 + scale * (high - low)[1] - at[:, 1]
        edges = ((at[body.parent + 1], at[j + 1]) for j, body in enumerate(robot.bodies))
        shapes += [Shape("line", (*start, *end), style, "") for start, end in edges]
        shapes += [Shape("circle", (*point, 4.0), style, "") for point in at]
    width, height = 20.0 + scale * (high - low)
    return Drawing("the robot in the widest poses of the motion", float(width), float(height), tuple(shapes))
