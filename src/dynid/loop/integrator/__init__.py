"""A robot under sampled control, simulated and differentiated in machine code.

The words of this folder, in the order of the data's way:

- *tick*: a control instant, one per control period. The law reads the state, its own memory and one row of given
  samples (the commanded motion), and sets an input, the torque, that is *held* until the next tick.
- *step*: one Runge-Kutta step of the state. A tick takes one step, or several where dry friction needs them (*pace*).
- *stage*: one evaluation of the rate of the state within a step; the fourth-order method has four.
- *record*: state, held input, rate and memory at a tick, written to the results at every k-th tick.
- *trace*: states and rates of all stages of all steps, kept only for derivatives.
- *lane*: one of several independent runs that are computed side by side in the lanes of a vector register.

`runge_kutta` splits the rate into pieces that are evaluated once per run, per step or per stage; `llvm_rollout` prints
them and the loops over ticks and steps as LLVM code (`critical_path` orders the instructions); `rollout` compiles and
runs it, or does the same with NumPy. `variation` and `llvm_variation` carry derivatives along a traced run.
"""
