# Types of the public names; written by tests/support/public_stub.py.

from dynid.monitor.alarms import Alarm as Alarm
from dynid.monitor.alarms import Watch as Watch
from dynid.monitor.alarms import watch_experiment as watch_experiment
from dynid.monitor.calibration import Calibration as Calibration
from dynid.monitor.calibration import calibrate as calibrate
from dynid.monitor.observer import MomentumObserver as MomentumObserver
from dynid.monitor.observer import energy_residual as energy_residual
from dynid.monitor.observer import external_torque as external_torque
from dynid.monitor.observer import observe as observe
from dynid.monitor.observer_model import ObserverModel as ObserverModel
