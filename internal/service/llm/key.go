package llm

import (
	"io"
	"os"
	"strings"
)

// A Key says where the key of a provider is: in a variable of the host's
// environment, or in a file. It is read whenever it is needed, so that a new one
// counts at once, and kept nowhere.
type Key struct {
	Env  string
	File string // only its owner may read it
}

// maxKey is the longest key.
const maxKey = 4 << 10

// Read returns the key; "" where neither place is named.
func (k Key) Read() (string, *Error) {
	switch {
	case k.Env != "":
		key := strings.TrimSpace(os.Getenv(k.Env))
		if key == "" {
			return "", errorf(Auth, "the environment variable %s is not set; put the provider's key there before starting the host", k.Env)
		}
		return checkKey(key, k.Env)
	case k.File != "":
		return k.read()
	}
	return "", nil
}

func (k Key) read() (string, *Error) {
	file, err := os.Open(k.File)
	if err != nil {
		return "", errorf(Auth, "the key cannot be read: %v", err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", errorf(Auth, "the key cannot be read: %v", err)
	case !info.Mode().IsRegular():
		return "", errorf(Auth, "%s is no regular file; it holds the provider's key and nothing else", k.File)
	case info.Mode().Perm()&0o077 != 0:
		return "", errorf(Auth, "%s can be read by others; let only its owner: chmod 600 %s", k.File, k.File)
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxKey+1))
	if err != nil {
		return "", errorf(Auth, "the key cannot be read: %v", err)
	}
	key := strings.TrimSpace(string(raw))
	if key == "" {
		return "", errorf(Auth, "%s is empty; it holds the provider's key and nothing else", k.File)
	}
	return checkKey(key, k.File)
}

// checkKey refuses what cannot be sent in a header.
func checkKey(key, place string) (string, *Error) {
	if len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errorf(Auth, "what is in %s is no key: it is one word of at most %d printable characters", place, maxKey)
	}
	return key, nil
}
