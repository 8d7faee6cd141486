package session

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"time"

	json2 "github.com/go-json-experiment/json"
)

// A dated is what the metadata of a person's file says of it: the name that it
// had, and when it was last changed.
type dated struct {
	Name     string    `json:"original_filename"`
	Modified time.Time `json:"modified_at"`
}

// datedOf returns the metadata of a person's file. JSON has no bytes that are no
// UTF-8: a name with such shows where they were.
func datedOf(name string, modified time.Time) (json.RawMessage, error) {
	return json2.Marshal(dated{strings.ToValidUTF8(name, "\uFFFD"), modified.UTC()})
}

// modified returns when a person's file was last changed, the zero time where
// that is not known. What a tool says of its own files is not believed.
func (a *Artifact) modified() time.Time {
	var said dated
	if a.SourceTool != "" || json2.Unmarshal(a.Metadata, &said) != nil {
		return time.Time{}
	}
	return said.Modified
}

// date gives a file of a view the time of the person's own. A link shares its
// time with the blob and with other views: it becomes a copy where another needs
// another time.
func (s *Sessions) date(ctx context.Context, tenant string, v View, a *Artifact, data []byte) error {
	at := a.modified()
	if at.IsZero() {
		return nil
	}
	path := v.Path(*a)
	info, err := os.Lstat(path)
	if err != nil || info.ModTime().Equal(at) {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 2 {
		if err := s.copy(ctx, tenant, v, a, data); err != nil {
			return err
		}
	}
	return os.Chtimes(path, at, at)
}
