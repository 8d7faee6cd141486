package registry

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
)

// A stamp tells cheaply, without reading them, whether files may have changed:
// it covers their names, sizes, times and inodes.
type stamp [sha256.Size]byte

func stampOf(files []file) stamp {
	sum := sha256.New()
	for _, f := range files {
		inode, changed := identity(f.info)
		fmt.Fprintf(sum, "%d %o %d %d %d %q\n", f.info.Size(), f.info.Mode(), f.info.ModTime().UnixNano(), inode, changed, f.name)
	}
	return stamp(sum.Sum(nil))
}

// stampDir stamps the package in dir; with all set, nothing is skipped.
func stampDir(ctx context.Context, dir string, all bool) (stamp, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return stamp{}, err
	}
	defer root.Close()
	files, err := scan(ctx, root.FS(), all)
	if err != nil {
		return stamp{}, err
	}
	return stampOf(files), nil
}
