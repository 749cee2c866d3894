# Types of the public names; written by tests/support/public_stub.py.

from dynid.processing.differentiation import CentralDifferences as CentralDifferences
from dynid.processing.differentiation import Fourier as Fourier
from dynid.processing.differentiation import MeasuredVelocity as MeasuredVelocity
from dynid.processing.differentiation import QuasiStatic as QuasiStatic
from dynid.processing.differentiation import SavitzkyGolay as SavitzkyGolay
from dynid.processing.differentiation import SmoothingSpline as SmoothingSpline
from dynid.processing.experiment import Experiment as Experiment
from dynid.processing.filters import Butterworth as Butterworth
from dynid.processing.filters import Fir as Fir
from dynid.processing.periods import PeriodAverage as PeriodAverage
from dynid.processing.periods import average_periods as average_periods
from dynid.processing.process import Processing as Processing
from dynid.processing.rest import Rest as Rest
from dynid.processing.simulation import Noise as Noise
from dynid.processing.simulation import simulate_experiment as simulate_experiment
from dynid.processing.streaming import process_stream as process_stream
from dynid.processing.uniform import Cleaning as Cleaning
