package webhook

// MAC is what senders compute.
func MAC(key []byte, text string) []byte { return mac(key, text) }
