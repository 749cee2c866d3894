"""What can be known: the robot's parameters, their base combinations, and why some of them stay hidden."""
