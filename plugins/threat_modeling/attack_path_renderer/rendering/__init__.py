"""The parts of attack_path_renderer: the paths, their layout, the formats."""
