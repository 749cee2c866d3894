"""What a robot is: model, joint models, readers and writers, the zoo."""
