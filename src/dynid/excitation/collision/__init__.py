"""The robot's body and its surroundings as convex shapes, and the distances between them."""
