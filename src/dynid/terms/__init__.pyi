# Types of the public names; written by tests/support/public_stub.py.

from dynid.terms.base import StateTerm as StateTerm
from dynid.terms.catalogue import TERMS as TERMS
from dynid.terms.coupling import Coupling as Coupling
from dynid.terms.coupling import MotorFriction as MotorFriction
from dynid.terms.friction import AsymmetricViscous as AsymmetricViscous
from dynid.terms.friction import SaturatingViscous as SaturatingViscous
from dynid.terms.friction import SmoothSign as SmoothSign
from dynid.terms.friction import Stribeck as Stribeck
from dynid.terms.load_dependent import CrossTalk as CrossTalk
from dynid.terms.load_dependent import DriveGain as DriveGain
from dynid.terms.memory import Hysteresis as Hysteresis
from dynid.terms.memory import LaggedSign as LaggedSign
from dynid.terms.springs import AngleHarmonic as AngleHarmonic
