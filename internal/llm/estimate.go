package llm

// Tokens that a request takes beside its text.
const (
	overhead    = 64   // roles, separators
	imageTokens = 5000 // no provider takes more for one image in its usual resolution
)

// tokens returns a high estimate of how many tokens a text is. Tokenizers
// differ; for all of them letters go several to a token, digits and signs may be
// a token each, and beyond ASCII a token is no less than a byte.
func tokens(text string) int {
	n, letters, spaces := 0, 0, 0
	end := func() {
		n += (letters+1)/2 + (spaces+3)/4
		letters, spaces = 0, 0
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			n += (spaces + 3) / 4
			spaces = 0
			letters++
		case c == ' ', c == '\t':
			n += (letters + 1) / 2
			letters = 0
			spaces++
		default:
			end()
			n++
		}
	}
	end()
	return n
}

// worst returns how much a request can use at most. Nobody can tell what a
// document comes to before it was read, so it counts as the whole context.
func (m *Model) worst(r *Request) Usage {
	in := overhead + tokens(r.System) + tokens(r.Prompt)
	for i := range r.Parts {
		if r.Parts[i].Image() {
			in += imageTokens
		} else {
			in = m.Context
		}
	}
	if m.Context > 0 {
		in = min(in, m.Context)
	}
	return Usage{In: in, Out: r.MaxTokens}
}
