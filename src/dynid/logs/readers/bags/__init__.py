"""Bags of ROS messages: the containers (MCAP, SQLite, ROS 1) and the messages that are decoded."""
