package report

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/mortise-dev/mortise/internal/service/session"
)

// quote puts the lines that findings cite beside them, and marks places that are not there. Each
// artifact is read once, to its end, where its hash is held against its bytes.
func (r *Report) quote(ctx context.Context, s Source) error {
	for _, a := range s.Artifacts {
		wanted := map[int64]string{}
		for _, f := range r.Findings {
			for _, p := range f.Places {
				if p.Artifact == a.ID && p.Line > 0 {
					wanted[p.Line] = ""
				}
			}
		}
		lines := int64(-1)
		if len(wanted) > 0 {
			var err error
			if lines, err = quoted(ctx, s, a, wanted); err != nil {
				return err
			}
		}
		for i := range r.Findings {
			for j := range r.Findings[i].Places {
				p := &r.Findings[i].Places[j]
				if p.Artifact == a.ID {
					p.Quote, p.Missing = wanted[p.Line], p.Offset >= a.Size || p.Line > 0 && p.Line > lines
				}
			}
		}
	}
	return nil
}

// quoted fills in lines of an artifact, and returns how many it has.
func quoted(ctx context.Context, s Source, a session.Artifact, wanted map[int64]string) (n int64, err error) {
	file, err := s.Open(ctx, a.ID)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			n++
			if _, is := wanted[n]; is {
				wanted[n] = clipped(strings.TrimRight(string(line[:min(len(line), maxQuote+1)]), "\r\n"), maxQuote)
			}
		}
		for err == bufio.ErrBufferFull { // what is beyond is not quoted
			_, err = in.ReadSlice('\n')
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("reading %s (%s): %w", a.ID, a.Name, err)
		}
	}
}

// sum is the hash of the bytes of an artifact as they are now.
func sum(ctx context.Context, s Source, id string) (string, error) {
	file, err := s.Open(ctx, id)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
