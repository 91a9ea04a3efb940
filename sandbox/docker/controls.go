package docker

import (
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-units"
)

// controls is the whole table, in the order in which doctor lists it.
func controls() []control {
	return slices.Concat(identityControls(), fileControls(), namespaceControls(), limitControls(), lifeControls())
}

// Who the sandbox is, and what its kernel lets it do.
func identityControls() []control {
	return []control{
		{
			name: "user", why: "nothing in a sandbox is root, not even PID 1",
			set:    func(m *made) { m.config.User = user },
			daemon: func(c container.InspectResponse) any { return c.Config.User }, want: "1000:1000",
			inside: "id -u; id -g; id -G; awk '/^Uid/ {print $2}' /proc/1/status", prints: "1000\n1000\n1000\n1000",
		},
		{
			name: "capabilities", why: "no process can gain a privilege of root's",
			set:    func(m *made) { m.host.CapDrop = []string{"ALL"} },
			daemon: func(c container.InspectResponse) any { return []any{c.HostConfig.CapDrop, c.HostConfig.CapAdd} }, want: "[[ALL] []]",
			inside: "grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status /proc/1/status | awk '{print $2}' | sort -u", prints: "0000000000000000",
		},
		{
			name: "no new privileges", why: "setuid programs and file capabilities have no effect",
			set: func(m *made) { m.host.SecurityOpt = append(m.host.SecurityOpt, "no-new-privileges") },
			daemon: func(c container.InspectResponse) any {
				return slices.Contains(c.HostConfig.SecurityOpt, "no-new-privileges")
			}, want: "true",
			inside: "awk '/NoNewPrivs/ {print $2}' /proc/self/status", prints: "1",
		},
		{
			name: "not privileged", why: "a privileged container is the host",
			daemon: func(c container.InspectResponse) any {
				return []any{c.HostConfig.Privileged, len(c.HostConfig.Devices), len(c.HostConfig.DeviceRequests), len(c.HostConfig.DeviceCgroupRules), len(c.HostConfig.GroupAdd)}
			}, want: "[false 0 0 0 0]",
			inside: "find /dev -type b | wc -l; mknod /tmp/disk b 8 0 2>/dev/null && rm /tmp/disk || echo refused", prints: "0\nrefused",
		},
		{
			name: "system call filter", why: "of the kernel's surface only what toolchains need is there",
			set: func(m *made) { m.host.SecurityOpt = append(m.host.SecurityOpt, "seccomp="+seccompProfile) },
			daemon: func(c container.InspectResponse) any {
				return slices.Contains(c.HostConfig.SecurityOpt, "seccomp="+seccompProfile)
			}, want: "true",
			inside: "awk '/^Seccomp:/ {print $2}' /proc/self/status; unshare --user true 2>/dev/null || echo refused", prints: "2\nrefused",
			remedy: "Use a kernel and a Docker daemon with seccomp; register runsc with the argument --oci-seccomp.",
		},
		{
			name: "runtime", why: "what SANDBOX_RUNTIME names is never replaced by a weaker one",
			set:    func(m *made) { m.host.Runtime = m.runtime },
			daemon: func(c container.InspectResponse) any { return c.HostConfig.Runtime }, want: "$runtime",
			inside: "case $(uname -r) in *gvisor*) echo runsc;; *) echo other;; esac", prints: "other", gvisor: "runsc",
			remedy: "Set SANDBOX_RUNTIME to a runtime that the daemon has; make runsc builds gVisor's.",
		},
	}
}

// What can be read and written.
func fileControls() []control {
	return []control{
		{
			name: "read-only root", why: "an image's programs stay what they are, and a container holds no state",
			set:    func(m *made) { m.host.ReadonlyRootfs = true },
			daemon: func(c container.InspectResponse) any { return c.HostConfig.ReadonlyRootfs }, want: "true",
			inside: "touch /x /etc/x /usr/x /home/x /workspace/x /opt/toolbox/x 2>/dev/null; ls -d /x /etc/x /usr/x /home/x /workspace/x /opt/toolbox/x 2>/dev/null | wc -l", prints: "0",
		},
		{
			name: "mounts", why: "only the session's volume is writable and lasts; nothing of the host is there",
			daemon: func(c container.InspectResponse) any {
				var all []string
				for _, m := range c.Mounts {
					all = append(all, string(m.Type)+" "+m.Destination+map[bool]string{true: " rw", false: " ro"}[m.RW])
				}
				slices.Sort(all)
				return []any{strings.Join(all, ", "), len(c.HostConfig.Binds), len(c.HostConfig.VolumesFrom)}
			}, want: "[volume /opt/toolbox ro, volume /workspace rw 0 0]",
			inside: "for d in /workspace/repo /workspace/home /tmp /run /dev/shm; do touch $d/x && rm $d/x && echo $d; done; " +
				"find / -xdev -writable -not -type l -not -path '/proc/*' -not -path '/dev/*' -not -path '/sys/*' -not -path '/workspace/*' -not -path '/tmp/*' 2>/dev/null | sort | tr '\\n' ' '",
			prints: "/workspace/repo\n/workspace/home\n/tmp\n/run\n/dev/shm\n/run /tmp",
		},
		{
			name: "/tmp", why: "builds execute what they write there; it is bounded and gone with the container",
			set: func(m *made) {
				m.host.Tmpfs = map[string]string{"/tmp": "rw,exec,nosuid,nodev,size=512m,mode=1777"}
			},
			daemon: func(c container.InspectResponse) any { return c.HostConfig.Tmpfs["/tmp"] }, want: "rw,exec,nosuid,nodev,size=512m,mode=1777",
			inside: "df -k /tmp | awk 'END {print $2}'; cp /bin/true /tmp/t && /tmp/t && echo ran; rm /tmp/t; grep ' /tmp ' /proc/mounts | grep -c nosuid", prints: "524288\nran\n1",
		},
		{
			name: "/run", why: "sockets and locks need a place that no program runs from",
			set:    func(m *made) { m.host.Tmpfs["/run"] = "rw,noexec,nosuid,nodev,size=16m,mode=0755,uid=1000,gid=1000" },
			daemon: func(c container.InspectResponse) any { return c.HostConfig.Tmpfs["/run"] }, want: "rw,noexec,nosuid,nodev,size=16m,mode=0755,uid=1000,gid=1000",
			inside: "df -k /run | awk 'END {print $2}'; cp /bin/true /run/t; /run/t 2>/dev/null || echo refused; rm /run/t", prints: "16384\nrefused",
		},
		{
			name: "shared memory", why: "it counts as memory and has a bound of its own",
			set:    func(m *made) { m.host.ShmSize = 64 << 20 },
			daemon: func(c container.InspectResponse) any { return c.HostConfig.ShmSize }, want: "67108864",
			inside: "df -k /dev/shm | awk 'END {print $2}'; cp /bin/true /dev/shm/t; /dev/shm/t 2>/dev/null || echo refused; rm /dev/shm/t", prints: "65536\nrefused",
		},
		{
			name: "masked kernel files", why: "they tell of the host and help exploits; the list does not depend on the daemon's version",
			set: func(m *made) { m.host.MaskedPaths, m.host.ReadonlyPaths = maskedPaths(), readonlyPaths() },
			daemon: func(c container.InspectResponse) any {
				return []any{slices.Equal(c.HostConfig.MaskedPaths, maskedPaths()), slices.Equal(c.HostConfig.ReadonlyPaths, readonlyPaths())}
			}, want: "[true true]",
			inside: "cat " + strings.Join(maskedPaths(), " ") + " 2>/dev/null | wc -c; for f in /proc/sys/kernel/core_pattern /proc/sys/vm/panic_on_oom /proc/sysrq-trigger; do (: >> $f) 2>/dev/null && echo $f; done; true",
			prints: "0",
		},
		{
			name: "no setuid programs", why: "there is nothing to be exploited even where no-new-privileges fails",
			daemon: func(c container.InspectResponse) any { return strings.HasPrefix(c.Config.Image, "sha256:") }, want: "true", // the image that was looked at
			inside: "find / -xdev -perm /6000 -type f 2>/dev/null | wc -l", prints: "0",
			remedy: "Build the image with scripts/build-image, or take the bits away: find / -xdev -perm /6000 -type f -exec chmod a-s {} +",
		},
		{
			name: "no Docker socket", why: "whoever has it is root on the host",
			daemon: func(c container.InspectResponse) any {
				return slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool { return strings.Contains(m.Source+m.Destination, ".sock") })
			}, want: "false",
			inside: "find / \\( -name '*docker*.sock' -o -name '*containerd*.sock' \\) 2>/dev/null | wc -l", prints: "0",
		},
	}
}

// What it shares with the host and with other sandboxes: nothing.
func namespaceControls() []control {
	return []control{
		{
			name: "no network", why: "the only way out is the toolbox's stream, where the control plane decides",
			set: func(m *made) { m.host.NetworkMode = "none" },
			daemon: func(c container.InspectResponse) any {
				return []any{c.HostConfig.NetworkMode, len(c.HostConfig.PortBindings), c.HostConfig.PublishAllPorts, len(c.HostConfig.Links), len(c.HostConfig.ExtraHosts)}
			}, want: "[none 0 false 0 0]",
			inside: "awk -F: 'NR > 2 {print $1}' /proc/net/dev | tr -d ' '; awk 'NR > 1' /proc/net/route | wc -l", prints: "lo\n0",
		},
		{
			name: "resolver", why: "the toolbox gives each name its address; the host's resolvers and domains are nobody's business",
			set:    func(m *made) { m.host.DNS, m.host.DNSSearch = []string{"127.0.0.1"}, []string{"."} },
			daemon: func(c container.InspectResponse) any { return []any{c.HostConfig.DNS, c.HostConfig.DNSSearch} }, want: "[[127.0.0.1] [.]]",
			inside: "cat /etc/resolv.conf; getent hosts localhost | wc -l", prints: "nameserver 127.0.0.1\n1",
		},
		{
			name: "processes of its own", why: "no other process can be seen or signalled",
			daemon: func(c container.InspectResponse) any { return []any{c.HostConfig.PidMode, c.HostConfig.UsernsMode} }, want: "[ ]",
			inside: "cat /proc/1/comm; ls -d /proc/[0-9]* | wc -l | awk '{print ($1 < 10)}'", prints: "toolboxd\n1",
		},
		{
			name: "IPC of its own", why: "no shared memory or queue of another is there",
			set:    func(m *made) { m.host.IpcMode = "private" },
			daemon: func(c container.InspectResponse) any { return c.HostConfig.IpcMode }, want: "private",
			inside: "cat /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg 2>/dev/null | grep -vc key", prints: "0",
		},
		{
			name: "host name of its own", why: "nothing names the host",
			set:    func(m *made) { m.config.Hostname = "sandbox" },
			daemon: func(c container.InspectResponse) any { return []any{c.Config.Hostname, c.HostConfig.UTSMode} }, want: "[sandbox ]",
			inside: "cat /etc/hostname; uname -n; hostname \"$(uname -n)\" 2>/dev/null || echo refused", prints: "sandbox\nsandbox\nrefused",
		},
		{
			name: "cgroups of its own", why: "the container's id and place on the host do not show, and no limit can be lifted",
			set: func(m *made) { m.host.CgroupnsMode = "private" },
			daemon: func(c container.InspectResponse) any {
				return []any{c.HostConfig.CgroupnsMode, c.HostConfig.CgroupParent}
			}, want: "[private ]",
			inside: "grep -c docker /proc/self/cgroup; find /sys/fs/cgroup -type f -writable 2>/dev/null | wc -l", prints: "0\n0",
		},
		{
			name: "one kernel setting", why: "the toolbox, which has no capability, listens on the ports of names; all others are the host's",
			set:    func(m *made) { m.host.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"} },
			daemon: func(c container.InspectResponse) any { return c.HostConfig.Sysctls }, want: "map[net.ipv4.ip_unprivileged_port_start:0]",
			inside: "find /proc/sys -type f -writable 2>/dev/null | wc -l; (: >> /proc/sys/net/ipv4/ip_forward) 2>/dev/null || echo refused", prints: "0\nrefused",
		},
	}
}

// How much of the host it may use.
func limitControls() []control {
	return []control{
		{
			name: "memory", why: "a sandbox that needs more ends alone; swap would slow its neighbours",
			set:    func(m *made) { m.host.Memory, m.host.MemorySwap = m.limits.MemoryBytes, m.limits.MemoryBytes },
			daemon: func(c container.InspectResponse) any { return []any{c.HostConfig.Memory, c.HostConfig.MemorySwap} }, want: "[$memory $memory]",
			inside: "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null", prints: "$memory",
			remedy: "Boot the Docker host with the memory controller (cgroup_enable=memory swapaccount=1), or use cgroup version 2.",
		},
		{
			name: "goes first", why: "under memory pressure a sandbox ends before the host's services",
			set: func(m *made) { m.host.OomScoreAdj = 500 },
			daemon: func(c container.InspectResponse) any {
				return []any{c.HostConfig.OomScoreAdj, c.HostConfig.OomKillDisable != nil && *c.HostConfig.OomKillDisable}
			}, want: "[500 false]",
			inside: "cat /proc/self/oom_score_adj; (echo -900 > /proc/self/oom_score_adj) 2>/dev/null || echo refused", prints: "500\nrefused", gvisor: "0", // its own number; the host's is the sentry's
		},
		{
			name: "processors", why: "a busy sandbox leaves the others their share",
			set:    func(m *made) { m.host.NanoCPUs = nanoCPUs(m.limits) },
			daemon: func(c container.InspectResponse) any { return c.HostConfig.NanoCPUs }, want: "$cpus",
			inside: "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cut -d' ' -f1 /sys/fs/cgroup/cpu.max", prints: "$quota",
			remedy: "Boot the Docker host with the CPU controller and its bandwidth control (CONFIG_CFS_BANDWIDTH).",
		},
		{
			name: "processor priority", why: "the host's services come first when all are busy",
			set:    func(m *made) { m.host.CPUShares = 512 },
			daemon: func(c container.InspectResponse) any { return c.HostConfig.CPUShares }, want: "512",
			inside: "test $(cat /sys/fs/cgroup/cpu/cpu.shares /sys/fs/cgroup/cpu.weight 2>/dev/null) -lt 1024 && echo less || echo 'not shown'", prints: "less", gvisor: "not shown",
		},
		{
			name: "process count", why: "a fork bomb ends at it",
			set: func(m *made) {
				pids := pidsLimit(m.runtime, m.limits)
				m.host.PidsLimit = &pids
				if m.runtime == gvisor {
					n := processes(m.limits)
					m.host.Ulimits = append(m.host.Ulimits, &units.Ulimit{Name: "nproc", Soft: n, Hard: n})
				}
			},
			daemon: func(c container.InspectResponse) any {
				if c.HostConfig.PidsLimit == nil {
					return nil
				}
				return *c.HostConfig.PidsLimit
			}, want: "$pids",
			inside: "cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null; case $(uname -r) in *gvisor*) ulimit -u;; esac", prints: "$pids", gvisor: "max\n$processes",
			remedy: "Use a kernel with the pids controller.",
		},
		{
			name: "file limits", why: "no core dumps, which hold memory, and a bounded number of open files",
			set: func(m *made) {
				m.host.Ulimits = append(m.host.Ulimits, &units.Ulimit{Name: "core"}, &units.Ulimit{Name: "nofile", Soft: 4096, Hard: 4096})
			},
			daemon: func(c container.InspectResponse) any {
				var all []string
				for _, u := range c.HostConfig.Ulimits {
					if u.Name != "nproc" && u.Name != "fsize" {
						all = append(all, u.String())
					}
				}
				return all
			}, want: "[core=0:0 nofile=4096:4096]",
			inside: "ulimit -Hc; ulimit -Hn", prints: "0\n4096",
		},
		{
			name: "file size", why: "one file never takes more than the workspace's budget, however quickly it is written",
			set: func(m *made) {
				if m.limits.DiskBytes > 0 {
					m.host.Ulimits = append(m.host.Ulimits, &units.Ulimit{Name: "fsize", Soft: m.limits.DiskBytes, Hard: m.limits.DiskBytes})
				}
			},
			daemon: func(c container.InspectResponse) any {
				for _, u := range c.HostConfig.Ulimits {
					if u.Name == "fsize" {
						return u.Hard
					}
				}
				return "none"
			}, want: "$filesize",
			inside: "ulimit -Hf", prints: "$fileblocks",
		},
	}
}

// Who decides over its life: the control plane alone.
func lifeControls() []control {
	return []control{
		{
			name: "nothing but the toolbox", why: "what Docker starts or restarts by itself, the control plane does not know of",
			set: func(m *made) {
				m.config.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}} // an image's would be a process of its own
				m.host.RestartPolicy.Name = container.RestartPolicyDisabled
			},
			daemon: func(c container.InspectResponse) any {
				var health []string
				if c.Config.Healthcheck != nil {
					health = c.Config.Healthcheck.Test
				}
				return []any{c.Config.Entrypoint, len(c.Config.Cmd), health, c.HostConfig.RestartPolicy.Name, c.HostConfig.AutoRemove}
			}, want: "[[/opt/toolbox/toolboxd] 0 [NONE] no false]",
			inside: "cat /proc/1/comm; for p in /proc/[0-9]*; do cat $p/comm 2>/dev/null; done | grep -vxcE 'toolboxd|bash|grep|cat'", prints: "toolboxd\n0",
		},
		{
			name: "no log", why: "what a sandbox prints is only the toolbox's stream; the daemon keeps no copy",
			set:    func(m *made) { m.host.LogConfig.Type = "none" },
			daemon: func(c container.InspectResponse) any { return c.HostConfig.LogConfig.Type }, want: "none",
			inside: "(: >> /proc/1/fd/1) 2>/dev/null || echo refused", prints: "refused",
		},
		{
			name: "PID 1 is closed", why: "a command must not read the toolbox's memory or answer in its place",
			daemon: func(c container.InspectResponse) any { return []any{c.Config.Tty, c.Config.StdinOnce} }, want: "[false false]",
			inside: "cat /proc/1/environ /proc/1/mem 2>/dev/null | wc -c; for n in 0 1 2 3; do (: < /proc/1/fd/$n) 2>/dev/null && echo opened; done; readlink /proc/1/fd/0 || echo refused", prints: "0\nrefused",
		},
		{
			name: "stop signal", why: "the toolbox takes every signal that it can, so that commands cannot end it; only KILL stops it",
			set:    func(m *made) { m.config.StopSignal = "SIGKILL" },
			daemon: func(c container.InspectResponse) any { return c.Config.StopSignal }, want: "SIGKILL",
			inside: "for s in TERM HUP INT QUIT USR1 SEGV ABRT TRAP RTMIN+3; do kill -$s 1; done; cat /proc/1/comm", prints: "toolboxd",
		},
		{
			name: "environment", why: "nothing of the worker's settings reaches a sandbox",
			daemon: func(c container.InspectResponse) any {
				return slices.ContainsFunc(c.Config.Env, func(e string) bool {
					name, _, _ := strings.Cut(e, "=")
					return strings.Contains(name, "KEY") || strings.Contains(name, "TOKEN") || strings.Contains(name, "SECRET") || strings.Contains(name, "PASSWORD") || name == "DATABASE_URL"
				})
			}, want: "false",
			inside: "env | cut -d= -f1 | grep -cE 'KEY|TOKEN|SECRET|PASSWORD|DATABASE_URL'", prints: "0",
		},
	}
}

// maskedPaths are empty inside: Docker's own list, and what tells addresses, interrupts and power use.
func maskedPaths() []string {
	return []string{
		"/proc/acpi", "/proc/asound", "/proc/config.gz", "/proc/interrupts", "/proc/iomem", "/proc/ioports", "/proc/kallsyms", "/proc/kcore",
		"/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats",
		"/sys/devices/virtual/powercap", "/sys/firmware", "/sys/kernel/debug", "/sys/kernel/security",
	}
}

// readonlyPaths cannot be written whoever asks.
func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}
