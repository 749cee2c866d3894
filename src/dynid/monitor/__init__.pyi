# Types of the public names; written by tests/support/public_stub.py.

from dynid.monitor.alarms import watch_experiment as watch_experiment
from dynid.monitor.calibration import calibrate as calibrate
from dynid.monitor.contact import contact_wrench as contact_wrench
from dynid.monitor.contact import find_touched_link as find_touched_link
from dynid.monitor.hand_guiding import HandGuiding as HandGuiding
from dynid.monitor.live_watch import LiveWatch as LiveWatch
from dynid.monitor.load_tracker import LoadTracker as LoadTracker
from dynid.monitor.observer import MomentumObserver as MomentumObserver
from dynid.monitor.observer import observe as observe
