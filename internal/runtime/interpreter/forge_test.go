package interpreter_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// A forged program is an ELF file whose tables say what a test wants. It has
// program headers, as the loader reads them, and sections, as most tools do.
type forged struct {
	loader         string
	needed         []string
	rpath, runpath []string
}

func (f forged) bytes() []byte {
	const headers, segments = 64, 3
	text := []byte{0}
	put := func(s string) uint64 {
		at := len(text)
		text = append(append(text, s...), 0)
		return uint64(at)
	}
	var dynamic []uint64
	for _, name := range f.needed {
		dynamic = append(dynamic, uint64(elf.DT_NEEDED), put(name))
	}
	for _, list := range f.rpath {
		dynamic = append(dynamic, uint64(elf.DT_RPATH), put(list))
	}
	for _, list := range f.runpath {
		dynamic = append(dynamic, uint64(elf.DT_RUNPATH), put(list))
	}
	loaderAt := put(f.loader)
	const textAt = headers + segments*56
	dynamicAt := uint64(textAt+len(text)+7) &^ 7
	dynamic = append(dynamic, uint64(elf.DT_STRTAB), textAt, uint64(elf.DT_STRSZ), uint64(len(text)), 0, 0)
	sectionsAt := dynamicAt + uint64(8*len(dynamic))

	var out bytes.Buffer
	write := func(v any) { _ = binary.Write(&out, binary.LittleEndian, v) }
	write(elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1},
		Type:  uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: headers, Shoff: sectionsAt,
		Ehsize: headers, Phentsize: 56, Phnum: segments, Shentsize: 64, Shnum: 3, Shstrndx: 2,
	})
	whole := sectionsAt + 3*64
	write(elf.Prog64{Type: uint32(elf.PT_LOAD), Filesz: whole, Memsz: whole, Align: 4096})
	if f.loader != "" {
		write(elf.Prog64{Type: uint32(elf.PT_INTERP), Off: textAt + loaderAt, Filesz: uint64(len(f.loader) + 1)})
	} else {
		write(elf.Prog64{})
	}
	write(elf.Prog64{Type: uint32(elf.PT_DYNAMIC), Off: dynamicAt, Vaddr: dynamicAt, Filesz: uint64(8 * len(dynamic))})
	out.Write(text)
	out.Write(make([]byte, dynamicAt-uint64(out.Len())))
	write(dynamic)
	write(elf.Section64{})
	write(elf.Section64{Type: uint32(elf.SHT_DYNAMIC), Off: dynamicAt, Size: uint64(8 * len(dynamic)), Link: 2, Entsize: 16})
	write(elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: textAt, Size: uint64(len(text))})
	return out.Bytes()
}
