package main

import "syscall"

// unmount detaches the file system at dir, also if a process that was killed
// still has a file open there.
func unmount(dir string) { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }
