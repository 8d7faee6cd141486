"""The parts of pcap_flow_analyzer: the capture, its flows, what stands out among them."""
