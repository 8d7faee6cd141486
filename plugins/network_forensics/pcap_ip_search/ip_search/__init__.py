"""The parts of pcap_ip_search: the capture, what is searched for, what was found."""
