"""Pictures and pages made from finished results; views only read."""
