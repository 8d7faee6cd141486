"""The parts of threat_model_builder: the system, the rules of STRIDE, the model that comes of them."""
