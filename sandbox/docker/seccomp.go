package docker

import _ "embed"

// seccompProfile lists the system calls of a sandbox; everything else is refused with EPERM, or with
// ENOSYS where libraries then fall back (clone3, io_uring, pidfd_send_signal). Beside what Docker's own
// default refuses it refuses io_uring, every namespace (user namespaces too), tracing and reading other
// processes, keyrings, all socket families but unix, IPv4, IPv6 and netlink's route family, the 32-bit
// ABI, and signals, limits and priorities by which a command could end or starve PID 1: also the choice
// of a signal that the kernel sends for a descriptor (F_SETSIG), which looks to a Go program like a
// fault of its own.
//
//go:embed seccomp.json
var seccompProfile string
