package cli

import "errors"

// An idempotencyKey is the value of --key. One that is given is not empty: a script whose
// variable is unset would run without a key.
type idempotencyKey struct{ to *string }

// String implements [pflag.Value].
func (k idempotencyKey) String() string {
	if k.to == nil {
		return ""
	}
	return *k.to
}

// Type implements [pflag.Value].
func (k idempotencyKey) Type() string { return "string" }

// Set implements [pflag.Value].
func (k idempotencyKey) Set(text string) error {
	if text == "" {
		return errors.New("the key is not 1 to 255 printable ASCII characters")
	}
	*k.to = text
	return nil
}
