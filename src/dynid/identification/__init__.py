"""The answers: identified links, load, and the proof on data not seen."""
