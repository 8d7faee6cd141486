"""The parts of attack_path_generator: the graph, the paths through it, what would cut them."""
