"""What the robot files beside a result cannot hold, and where it is kept."""

from __future__ import annotations

import re

from dynid.links.identify import Identification
from dynid.robot.formats.mjcf.bodies import JOINT_MODELS
from dynid.robot.formats.urdf import DYNAMICS

__all__ = ["missing_terms", "terms_note"]


def missing_terms(fit: Identification) -> dict[str, tuple[str, ...]]:
    """File format -> identified terms it has no place for: joint models not zero, coupled motors, selected terms."""
    held = {"URDF": tuple(DYNAMICS.values()), "MJCF": tuple(JOINT_MODELS.values())}
    models = [model for joint in fit.identified.moving_joints for model in joint.models if any(model.values)]
    couplings = ["coupled motors"] if any(any(coupling.values) for coupling in fit.identified.couplings) else []
    features = [feature.name for feature in fit.terms]
    return {
        name: tuple(dict.fromkeys([_words(m) for m in models if not isinstance(m, kinds)] + couplings + features))
        for name, kinds in held.items()
    }


def terms_note(fit: Identification, folder: object) -> str:
    """One sentence for people: what the files lack, and what takes the whole; empty where nothing is lost."""
    lost = [f"{name} has no place for {', '.join(terms)}" for name, terms in missing_terms(fit).items() if terms]
    if not lost:
        return ""
    return f"Of what was identified, {'; '.join(lost)}. result.json has it all: dynid codegen {folder} takes it."


def _words(model: object) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", " ", type(model).__name__).lower()
