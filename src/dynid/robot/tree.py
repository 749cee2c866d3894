"""Ordering of joints from the root outwards, with every way of not being a tree named."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict

from dynid.errors import DescriptionError
from dynid.robot.parts import Joint, Link

__all__ = ["topological_order"]


def topological_order(links: tuple[Link, ...], joints: tuple[Joint, ...]) -> tuple[Joint, ...]:
    """Joints with parents before children, otherwise in the given order.

    Raises:
        DescriptionError: The links do not form one tree with unique names.
    """
    _check_unique("link", [link.name for link in links])
    _check_unique("joint", [joint.name for joint in joints])
    _check_connections({link.name for link in links}, joints)
    root = _single_root(links, joints)
    outgoing: dict[str, list[int]] = defaultdict(list)
    for index, joint in enumerate(joints):
        outgoing[joint.parent].append(index)
    ready = list(outgoing[root])
    heapq.heapify(ready)
    ordered: list[Joint] = []
    while ready:
        joint = joints[heapq.heappop(ready)]
        ordered.append(joint)
        for index in outgoing[joint.child]:
            heapq.heappush(ready, index)
    if len(ordered) < len(joints):
        stuck = next(joint for joint in joints if joint not in ordered)
        raise DescriptionError("the joints form a cycle", place=f"joint '{stuck.name}'", remedy="Cut the loop.")
    return tuple(ordered)


def _check_unique(what: str, names: list[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise DescriptionError(
                f"{count} {what}s have the name '{name}'", place=f"{what} '{name}'", remedy="Rename all but one."
            )


def _check_connections(link_names: set[str], joints: tuple[Joint, ...]) -> None:
    held: set[str] = set()
    for joint in joints:
        for name in (joint.parent, joint.child):
            if name not in link_names:
                raise DescriptionError(
                    f"link '{name}' does not exist",
                    place=f"joint '{joint.name}'",
                    remedy="Add the link or mend its name.",
                )
        if joint.child in held or joint.child == joint.parent:
            raise DescriptionError(
                f"link '{joint.child}' hangs on two joints or on itself: a kinematic loop",
                place=f"joint '{joint.name}'",
                remedy="Cut the loop: dynid handles serial chains and trees.",
            )
        held.add(joint.child)


def _single_root(links: tuple[Link, ...], joints: tuple[Joint, ...]) -> str:
    children = {joint.child for joint in joints}
    roots = [link.name for link in links if link.name not in children]
    if len(roots) != 1:
        found = "every link has a parent" if not roots else f"{len(roots)} links have no parent: {', '.join(roots[:5])}"
        raise DescriptionError(
            f"the links do not form one tree: {found}", remedy="Exactly one link, the base, may have no parent joint."
        )
    return roots[0]
