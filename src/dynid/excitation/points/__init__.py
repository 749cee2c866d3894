"""The way of [GautierKhalil1992]: sequences of points that reveal the energies best, and motions through them."""
