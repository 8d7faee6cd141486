package plugin

// A File is a file that a call may show to its plugin: one that a person handed
// on with the call at the surface where they are, or an artifact of the call's
// session. It is a capability: only a surface or the host makes one, and no
// input can, whatever its origin. An input names it by its handle.
type File struct {
	Handle  string   `json:"handle"` // art_...
	Name    string   `json:"name"`   // what to call it
	Size    int64    `json:"size"`
	Path    string   `json:"path"` // where a plugin finds it
	Is      FileID   `json:"is"`   // which file it was when it was opened
	Session bool     `json:"-"`    // the host's own copy, an artifact of the session
	Labels  []string `json:"labels,omitempty"`
}

// A FileID tells a file, as it is at one moment, from every other. Zeros are not
// known.
type FileID struct {
	Device   uint64 `json:"device"`
	Inode    uint64 `json:"inode"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // nanoseconds
	Changed  int64  `json:"changed"`  // nanoseconds; no program can set it
}
