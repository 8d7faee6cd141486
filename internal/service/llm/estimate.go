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

// worst returns the most that a request can use. The size of a document in tokens is
// unknown before the model reads it, so it counts as the whole context.
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

// Tokens that a conversation takes beside its text.
const (
	messageTokens = 16
	toolTokens    = 1024 // what providers tell a model about tools as such
)

// worstMove returns how much a move of a conversation can use at most.
func (m *Model) worstMove(r *ConverseRequest) Usage {
	in := overhead + tokens(r.System)
	for i := range r.Messages {
		msg := &r.Messages[i]
		in += messageTokens + tokens(msg.Text)
		for _, u := range msg.Uses {
			in += messageTokens + tokens(u.ID) + tokens(u.Name) + tokens(string(u.Input)) + len(u.Signature)
		}
		for _, res := range msg.Results {
			in += messageTokens + tokens(res.ID) + tokens(res.Name) + tokens(res.Text)
		}
	}
	for _, t := range r.Tools {
		in += messageTokens + tokens(t.Name) + tokens(t.Description) + tokens(string(t.Schema))
	}
	if len(r.Tools) > 0 {
		in += toolTokens
	}
	if m.Context > 0 {
		in = min(in, m.Context)
	}
	return Usage{In: in, Out: r.MaxTokens}
}
