//go:build linux

// Command kernelprobe makes each system call that a sandbox must refuse, with arguments with which it would
// succeed or fail otherwise where it is allowed, and prints a line for each: its name and the error, or "ok".
// It is harmless where everything is allowed.
package main

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is one attempt.
type call struct {
	name string
	nr   uintptr
	args [6]uintptr
}

func main() {
	text, buf := append([]byte("/tmp"), 0), make([]byte, 256)
	for _, c := range append(calls(pointer(text), pointer(buf)), archCalls(pointer(buf))...) {
		report(c)
	}
	for family := range uintptr(unix.AF_MAX) {
		for _, kind := range []uintptr{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
			// Raw internet sockets are the capabilities' business.
			if family == unix.AF_UNIX || family == unix.AF_INET || family == unix.AF_INET6 || family == unix.AF_NETLINK {
				continue
			}
			report(call{fmt.Sprintf("socket family %d type %d", family, kind), unix.SYS_SOCKET, [6]uintptr{family, kind, 0}})
		}
	}
	for protocol := range uintptr(23) {
		if protocol != unix.NETLINK_ROUTE {
			report(call{fmt.Sprintf("netlink %d", protocol), unix.SYS_SOCKET, [6]uintptr{unix.AF_NETLINK, unix.SOCK_RAW, protocol}})
		}
	}
	for name, family := range map[string]uintptr{"unix": unix.AF_UNIX, "inet": unix.AF_INET, "inet6": unix.AF_INET6, "netlink route": unix.AF_NETLINK} {
		report(call{"allowed " + name, unix.SYS_SOCKET, [6]uintptr{family, unix.SOCK_DGRAM, 0}})
	}
}

func pointer(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

func report(c call) {
	r, _, errno := unix.RawSyscall6(c.nr, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
	if errno == 0 && r == 0 && (c.nr == unix.SYS_CLONE) {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0) // the child
	}
	result := "ok"
	if errno != 0 {
		if result = unix.ErrnoName(errno); result == "" {
			result = strconv.Itoa(int(errno))
		}
	}
	fmt.Fprintf(os.Stdout, "%s\t%s\n", c.name, result)
}

// calls are those that every architecture has. text is a path, buf are zeros.
func calls(text, buf uintptr) []call {
	const (
		none = ^uintptr(0)  // -1
		cwd  = ^uintptr(99) // AT_FDCWD
		init = 1
	)
	return []call{
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, [6]uintptr{1, buf}},
		{"io_uring_enter", unix.SYS_IO_URING_ENTER, [6]uintptr{none, 1, 0, 0, 0, 0}},
		{"io_uring_register", unix.SYS_IO_URING_REGISTER, [6]uintptr{none, 0, 0, 0}},
		{"bpf", unix.SYS_BPF, [6]uintptr{0, buf, 64}},
		{"userfaultfd", unix.SYS_USERFAULTFD, [6]uintptr{1}},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [6]uintptr{buf, 0, none, none, 0}},
		{"add_key", unix.SYS_ADD_KEY, [6]uintptr{text, text, buf, 1, ^uintptr(2)}},
		{"request_key", unix.SYS_REQUEST_KEY, [6]uintptr{text, text, 0, ^uintptr(2)}},
		{"keyctl", unix.SYS_KEYCTL, [6]uintptr{0, ^uintptr(2), 0}},
		{"ptrace traceme", unix.SYS_PTRACE, [6]uintptr{0}},
		{"ptrace attach", unix.SYS_PTRACE, [6]uintptr{16, init}},
		{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [6]uintptr{init, buf, 1, buf, 1, 0}},
		{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, [6]uintptr{init, buf, 1, buf, 1, 0}},
		{"process_madvise", unix.SYS_PROCESS_MADVISE, [6]uintptr{none, 0, 0, 0, 0}},
		{"process_mrelease", unix.SYS_PROCESS_MRELEASE, [6]uintptr{none, 0}},
		{"kcmp", unix.SYS_KCMP, [6]uintptr{init, init, 0, 0, 0}},
		{"pidfd_getfd", unix.SYS_PIDFD_GETFD, [6]uintptr{none, 0, 0}},
		{"pidfd_send_signal", unix.SYS_PIDFD_SEND_SIGNAL, [6]uintptr{none, 0, 0, 0}},
		{"mount", unix.SYS_MOUNT, [6]uintptr{text, text, text, 0, 0}},
		{"umount2", unix.SYS_UMOUNT2, [6]uintptr{text, 8}},
		{"pivot_root", unix.SYS_PIVOT_ROOT, [6]uintptr{text, text}},
		{"chroot", unix.SYS_CHROOT, [6]uintptr{buf}},
		{"fsopen", unix.SYS_FSOPEN, [6]uintptr{text, 0}},
		{"fsconfig", unix.SYS_FSCONFIG, [6]uintptr{none, 0, 0, 0, 0}},
		{"fsmount", unix.SYS_FSMOUNT, [6]uintptr{none, 0, 0}},
		{"fspick", unix.SYS_FSPICK, [6]uintptr{cwd, text, 0}},
		{"open_tree", unix.SYS_OPEN_TREE, [6]uintptr{cwd, text, 0}},
		{"move_mount", unix.SYS_MOVE_MOUNT, [6]uintptr{cwd, text, cwd, text, 0}},
		{"mount_setattr", unix.SYS_MOUNT_SETATTR, [6]uintptr{cwd, text, 0, buf, 32}},
		{"setns", unix.SYS_SETNS, [6]uintptr{none, 0}},
		{"unshare user", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWUSER}},
		{"unshare network", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWNET}},
		{"unshare mounts", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWNS}},
		{"unshare cgroup", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWCGROUP}},
		{"clone user", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}},
		{"clone pid", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWPID | uintptr(unix.SIGCHLD)}},
		{"clone network", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWNET | uintptr(unix.SIGCHLD)}},
		{"clone mounts", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWNS | uintptr(unix.SIGCHLD)}},
		{"clone cgroup", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWCGROUP | uintptr(unix.SIGCHLD)}},
		{"clone3", unix.SYS_CLONE3, [6]uintptr{buf, 1}},
		{"rt_sigqueueinfo to PID 1", unix.SYS_RT_SIGQUEUEINFO, [6]uintptr{init, 10, buf}},
		{"rt_tgsigqueueinfo to PID 1", unix.SYS_RT_TGSIGQUEUEINFO, [6]uintptr{init, init, 10, buf}},
		{"prlimit64 of PID 1", unix.SYS_PRLIMIT64, [6]uintptr{init, unix.RLIMIT_NOFILE, 0, buf}},
		{"setpriority of PID 1", unix.SYS_SETPRIORITY, [6]uintptr{unix.PRIO_PROCESS, init, 19}},
		{"setpriority of a user", unix.SYS_SETPRIORITY, [6]uintptr{unix.PRIO_USER, 0, 19}},
		{"ioprio_set of PID 1", unix.SYS_IOPRIO_SET, [6]uintptr{1, init, 0}},
		{"ioprio_set of a user", unix.SYS_IOPRIO_SET, [6]uintptr{3, 0, 0}},
		{"sched_setaffinity of PID 1", unix.SYS_SCHED_SETAFFINITY, [6]uintptr{init, 8, buf}},
		{"sched_setscheduler of PID 1", unix.SYS_SCHED_SETSCHEDULER, [6]uintptr{init, 3, buf}},
		{"sched_setattr of PID 1", unix.SYS_SCHED_SETATTR, [6]uintptr{init, buf, 0}},
		{"sched_setparam of PID 1", unix.SYS_SCHED_SETPARAM, [6]uintptr{init, buf}},
		{"init_module", unix.SYS_INIT_MODULE, [6]uintptr{buf, 1, text}},
		{"finit_module", unix.SYS_FINIT_MODULE, [6]uintptr{none, text, 0}},
		{"delete_module", unix.SYS_DELETE_MODULE, [6]uintptr{text, 0}},
		{"kexec_load", unix.SYS_KEXEC_LOAD, [6]uintptr{0, 1 << 20, 0, 0}},
		{"reboot", unix.SYS_REBOOT, [6]uintptr{0, 0, 0, 0}},
		{"swapon", unix.SYS_SWAPON, [6]uintptr{text, 0}},
		{"swapoff", unix.SYS_SWAPOFF, [6]uintptr{buf}},
		{"acct", unix.SYS_ACCT, [6]uintptr{text}},
		{"settimeofday", unix.SYS_SETTIMEOFDAY, [6]uintptr{1, 1}},
		{"clock_settime", unix.SYS_CLOCK_SETTIME, [6]uintptr{1 << 20, buf}},
		{"adjtimex", unix.SYS_ADJTIMEX, [6]uintptr{buf}},
		{"clock_adjtime", unix.SYS_CLOCK_ADJTIME, [6]uintptr{0, buf}},
		{"sethostname", unix.SYS_SETHOSTNAME, [6]uintptr{text, 1 << 20}},
		{"setdomainname", unix.SYS_SETDOMAINNAME, [6]uintptr{text, 1 << 20}},
		{"quotactl", unix.SYS_QUOTACTL, [6]uintptr{0, 0, 0, 0}},
		{"syslog", unix.SYS_SYSLOG, [6]uintptr{10, 0, 0}},
		{"vhangup", unix.SYS_VHANGUP, [6]uintptr{}},
		{"nfsservctl", unix.SYS_NFSSERVCTL, [6]uintptr{}},
		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [6]uintptr{none, buf, 0}},
		{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, [6]uintptr{cwd, text, buf, buf, 0}},
		{"lookup_dcookie", unix.SYS_LOOKUP_DCOOKIE, [6]uintptr{0, buf, 9}},
		{"fanotify_init", unix.SYS_FANOTIFY_INIT, [6]uintptr{0, 0}},
		{"fanotify_mark", unix.SYS_FANOTIFY_MARK, [6]uintptr{none, 1, 0, 0, 0}},
		{"mbind", unix.SYS_MBIND, [6]uintptr{0, 0, 0, 0, 0, 0}},
		{"set_mempolicy", unix.SYS_SET_MEMPOLICY, [6]uintptr{0, 0, 0}},
		{"get_mempolicy", unix.SYS_GET_MEMPOLICY, [6]uintptr{0, 0, 0, 0, 0}},
		{"migrate_pages", unix.SYS_MIGRATE_PAGES, [6]uintptr{init, 0, 0, 0}},
		{"move_pages", unix.SYS_MOVE_PAGES, [6]uintptr{init, 0, 0, 0, 0, 0}},
		{"memfd_secret", unix.SYS_MEMFD_SECRET, [6]uintptr{0}},
		{"remap_file_pages", unix.SYS_REMAP_FILE_PAGES, [6]uintptr{0, 0, 0, 0, 0}},
	}
}
