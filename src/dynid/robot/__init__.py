"""What a robot is: model, terms, readers and writers, the zoo."""
