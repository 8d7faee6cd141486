package plugins

import (
	"embed"
	"io/fs"
	"path"
)

// A runnable knows what embedding forgets: that the files of a directory bin
// are programs. A package is installed with the modes that it comes with.
type runnable struct{ embed.FS }

func isProgram(name string) bool { return path.Base(path.Dir(name)) == "bin" }

// Open opens a file, or a directory that lists what ReadDir does.
func (r runnable) Open(name string) (fs.File, error) {
	file, err := r.FS.Open(name)
	if err != nil || !isProgram(name) {
		return file, err
	}
	return program{file}, nil
}

// ReadDir lists a directory.
func (r runnable) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := r.FS.ReadDir(name)
	for i, entry := range entries {
		if !entry.IsDir() && isProgram(path.Join(name, entry.Name())) {
			entries[i] = programEntry{entry}
		}
	}
	return entries, err
}

type program struct{ fs.File }

func (p program) Stat() (fs.FileInfo, error) {
	info, err := p.File.Stat()
	if err != nil || info.IsDir() {
		return info, err
	}
	return programInfo{info}, nil
}

type programEntry struct{ fs.DirEntry }

func (e programEntry) Info() (fs.FileInfo, error) {
	info, err := e.DirEntry.Info()
	if err != nil {
		return nil, err
	}
	return programInfo{info}, nil
}

type programInfo struct{ fs.FileInfo }

func (i programInfo) Mode() fs.FileMode { return i.FileInfo.Mode() | 0o111 }
