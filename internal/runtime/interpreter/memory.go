package interpreter

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
)

// A memory keeps what interpreters said of themselves, so that the slow ones
// are asked once. It is a convenience: what cannot be read was never known,
// and what cannot be written is asked again.
type memory struct {
	file string
	mu   sync.Mutex // one reader or writer of the file in this process
	here answers    // what was said to this process, whether it can be written or not
}

// An answer is what a program said, and which program that was.
type answer struct {
	Form     int      `json:"form"` // [answerForm] when it was asked
	Size     int64    `json:"size"`
	Modified int64    `json:"modified"` // nanoseconds since 1970
	Real     string   `json:"real"`
	Reads    []string `json:"reads"` // what it needs to run, where that is there
	UserSite string   `json:"user_site,omitempty"`
	Version  string   `json:"version"`
}

// answerForm changes with what interpreters are asked: what an earlier host was
// told is asked again. Up to 2, programs of packages were asked too.
const answerForm = 3

// answers are by the interpreter's name and the path of the program.
type answers map[string]map[string]answer

// recall returns the answer of the program at path, provided it is still the
// same file.
func (m *memory) recall(name, path string, info os.FileInfo) (answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.read()[name][path]
	return known, ok && known.Form == answerForm && known.Size == info.Size() && known.Modified == info.ModTime().UnixNano()
}

// real returns the answer that named a program as the real one.
func (m *memory) real(name, program string) (answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, all := range []answers{m.here, m.read()} {
		for _, said := range all[name] {
			if said.Real == program && said.Form == answerForm {
				return said, true
			}
		}
	}
	return answer{}, false
}

// keep writes an answer down, and forgets those of programs that are gone.
func (m *memory) keep(name, path string, said answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.here == nil {
		m.here = answers{}
	}
	if m.here[name] == nil {
		m.here[name] = map[string]answer{}
	}
	m.here[name][path] = said
	all := m.read()
	for _, paths := range all {
		for path := range paths {
			if !exists(path) {
				delete(paths, path)
			}
		}
	}
	if all[name] == nil {
		all[name] = map[string]answer{}
	}
	all[name][path] = said
	if data, err := json.MarshalIndent(all, "", "  "); err == nil {
		_ = writeFile(m.file, append(data, '\n'))
	}
}

func (m *memory) read() answers {
	all := answers{}
	if data, err := os.ReadFile(m.file); err != nil || json.Unmarshal(data, &all) != nil {
		return answers{}
	}
	return all
}

// writeFile makes a file that is there whole or not at all, even when the
// machine loses power.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err == nil { // in a cage, programs have a user of their own; the directories keep others out
		err = temp.Chmod(0o644)
	}
	if err == nil {
		err = temp.Sync()
	}
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}
