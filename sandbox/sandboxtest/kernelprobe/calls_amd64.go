package main

import "golang.org/x/sys/unix"

func archCalls(buf uintptr) []call {
	return []call{
		{"iopl", unix.SYS_IOPL, [6]uintptr{3}},
		{"ioperm", unix.SYS_IOPERM, [6]uintptr{0, 1, 1}},
		{"modify_ldt", unix.SYS_MODIFY_LDT, [6]uintptr{0, buf, 16}},
		{"kexec_file_load", unix.SYS_KEXEC_FILE_LOAD, [6]uintptr{^uintptr(0), ^uintptr(0), 0, buf, 0}},
		{"uselib", unix.SYS_USELIB, [6]uintptr{buf}},
		{"ustat", unix.SYS_USTAT, [6]uintptr{0, buf}},
		{"sysfs", unix.SYS_SYSFS, [6]uintptr{3}},
	}
}
