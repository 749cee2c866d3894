"""From a raw Recording to an Experiment: uniform clock, filters, derivatives, masks."""
