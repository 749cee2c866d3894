"""One time step of a robot of servos on the tape, and the loops over time in machine code."""
