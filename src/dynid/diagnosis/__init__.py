"""Why does it not fit? A table of suspects, one test at one stated rate of false alarms."""
