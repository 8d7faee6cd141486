package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/mortise-dev/mortise/internal/host/datadir"
)

// maxStrange is how many files are named that no backup has.
const maxStrange = 10

// contents says what is in the data directory that is none of the host's, and so in no backup.
func (e *examination) contents() {
	entries, err := os.ReadDir(e.Home)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var strange []string
	for _, one := range entries {
		if _, known := datadir.Find(one.Name()); !known {
			strange = append(strange, one.Name())
		}
	}
	if err == nil && len(strange) > 0 {
		err = fmt.Errorf("%s: the host does not know these, and no backup has them; keep them elsewhere, or back them up yourself", strings.Join(strange[:min(len(strange), maxStrange)], ", "))
	}
	e.add("what is in the data directory", false, err, "a backup has all of it that hosts do not make again")
}
