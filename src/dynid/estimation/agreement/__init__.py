"""Whether several runs agree."""
