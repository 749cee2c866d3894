"""MuJoCo's MJCF: reading a robot and writing identified parameters back."""
