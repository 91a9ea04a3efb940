package docker

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"
)

// HostFinding is what one look at the Docker host gave: of its daemon, its runtimes and its kernel.
type HostFinding struct {
	Name, Detail string
	// Remedy is what an operator can change about it; "" when nothing has to be, or can be.
	Remedy string
}

// ExamineHost looks at what surrounds every sandbox and no container can set for itself. It changes nothing.
func (r *Runtime) ExamineHost(ctx context.Context) ([]HostFinding, error) {
	info, err := r.info(ctx)
	if err != nil {
		return nil, err
	}
	var version types.Version
	if err := r.ask(ctx, "read the daemon's version", func(ctx context.Context) (err error) {
		version, err = r.api.ServerVersion(ctx)
		return err
	}); err != nil {
		return nil, err
	}
	all := []HostFinding{
		{Name: "kernel", Detail: info.KernelVersion + ", " + info.OperatingSystem},
		examineRunc(version),
		r.examineGVisor(ctx, info),
		r.examineSocket(info),
		r.examineUserNamespaces(info),
		r.examineSecurityModule(info),
		{Name: "live restore", Detail: "on"},
		examineLimits(info),
		examineStorage(info),
		{Name: "swarm", Detail: "off"},
		examineRegistries(info),
	}
	if !info.LiveRestoreEnabled {
		set(all, "live restore", "off: a restart of the daemon ends every sandbox, and what runs in it", `Set "live-restore": true in the daemon's configuration.`)
	}
	if info.Swarm.LocalNodeState != "" && info.Swarm.LocalNodeState != "inactive" {
		set(all, "swarm", "the daemon is part of a swarm, which opens ports", "Run sandboxes on a daemon of their own: docker swarm leave.")
	}
	if info.ExperimentalBuild {
		all = append(all, HostFinding{"experimental", "experimental features are on", `Set "experimental": false in the daemon's configuration.`})
	}
	return all, nil
}

func set(all []HostFinding, name, detail, remedy string) {
	i := slices.IndexFunc(all, func(f HostFinding) bool { return f.Name == name })
	all[i].Detail, all[i].Remedy = detail, remedy
}

// examineRunc knows two escapes of runc by their versions. Debian and others fix without a new number of
// runc's own; then their suffix counts.
func examineRunc(version types.Version) HostFinding {
	full := ""
	for _, c := range version.Components {
		if c.Name == "runc" {
			full = c.Version
			if commit := c.Details["GitCommit"]; strings.HasPrefix(commit, c.Version) { // a distribution's: with its suffix
				full = commit
			}
		}
	}
	found := HostFinding{Name: "runc", Detail: full}
	switch {
	case full == "":
		found.Detail, found.Remedy = "the daemon does not tell its version", "Find out whether it has the fix of CVE-2024-21626: runc --version."
	case runcBelow(full, 1, 1, 12) && !fixedByDistribution(full):
		found.Detail += ": lacks the fix of CVE-2024-21626, an escape by a leaked descriptor"
		found.Remedy = "Update runc to 1.1.12 or newer, or to your distribution's security release."
	case runcBelow(full, 1, 2, 8) && ofDistribution.MatchString(full):
		found.Detail += ": has the fix of CVE-2024-21626; whether those of CVE-2025-31133, -52565 and -52881 are in it, your distribution's security tracker says"
	case runcBelow(full, 1, 2, 8):
		found.Detail += ": lacks the fixes of CVE-2025-31133, -52565 and -52881"
		found.Remedy = "Update runc to 1.2.8 or 1.3.3."
	}
	return found
}

// ofDistribution is what marks a package whose fixes come without a new number.
var ofDistribution = regexp.MustCompile(`deb\d|ubuntu|\.(el|fc|amzn|suse)\d`)

// fixedByDistribution knows Debian's releases with the fix of CVE-2024-21626.
func fixedByDistribution(version string) bool {
	for _, release := range []struct{ prefix, mark string }{{"1.1.5+ds1-1+deb12u", "1"}, {"1.0.0~rc93+ds1-5+deb11u", "3"}} {
		if update, ok := strings.CutPrefix(version, release.prefix); ok {
			have, err := strconv.Atoi(update)
			need, _ := strconv.Atoi(release.mark)
			return err == nil && have >= need
		}
	}
	return false
}

// runcBelow compares the leading x.y.z; what cannot be read is not below.
func runcBelow(version string, major, minor, patch int) bool {
	var have [3]int
	if n, _ := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d.%d", &have[0], &have[1], &have[2]); n < 3 {
		return false
	}
	return slices.Compare(have[:], []int{major, minor, patch}) < 0
}

// examineGVisor looks how runsc is registered, when sandboxes run with it.
func (r *Runtime) examineGVisor(ctx context.Context, info system.Info) HostFinding {
	found := HostFinding{Name: "gVisor", Detail: "not registered with the daemon"}
	registered, ok := info.Runtimes[gvisor]
	switch {
	case !ok && r.config.Runtime == gvisor:
		found.Remedy = `Run make runsc, and add it to "runtimes" in the daemon's configuration with "runtimeArgs": ["--oci-seccomp"].`
		return found
	case !ok:
		found.Detail += ": sandboxes share the host's kernel, which does for people whom you trust"
		return found
	}
	found.Detail = "registered"
	if local(r.config.Host) {
		out, err := exec.CommandContext(ctx, registered.Path, "--version").Output() //nolint:gosec // the daemon runs the same as root
		if first, _, _ := strings.Cut(string(out), "\n"); err == nil && first != "" {
			found.Detail = first
		}
	}
	switch {
	case r.config.Runtime != gvisor:
		found.Detail += ", not used: sandboxes share the host's kernel, which does for people whom you trust"
	case !slices.ContainsFunc(registered.Args, func(a string) bool { return strings.TrimLeft(a, "-") == "oci-seccomp" }):
		found.Detail += ", without --oci-seccomp: our system call filter does not hold inside"
		found.Remedy = `Add "runtimeArgs": ["--oci-seccomp"] to runsc in the daemon's configuration.`
	}
	return found
}

func local(host string) bool { return strings.HasPrefix(host, "unix://") }

// examineSocket asks who can command the daemon: whoever can is root on its host.
func (r *Runtime) examineSocket(info system.Info) HostFinding {
	found := HostFinding{Name: "daemon socket", Detail: r.config.Host}
	for _, warning := range info.Warnings {
		if strings.Contains(warning, "API is accessible") {
			found.Detail, found.Remedy = "the daemon listens without encryption or proof of identity", "Take its tcp address away, or demand client certificates (--tlsverify)."
			return found
		}
	}
	address, err := url.Parse(r.config.Host)
	switch {
	case err != nil:
	case address.Scheme == "unix":
		if about, err := os.Stat(address.Path); err == nil && about.Mode().Perm()&0o007 != 0 {
			found.Detail += ": everybody on this machine may use it"
			found.Remedy = "chmod 0660 " + address.Path
		}
	case address.Scheme == "tcp" || address.Scheme == "http":
		found.Detail += ": reached without encryption"
		found.Remedy = "Use the local socket, ssh://, or TLS with client certificates."
	}
	return found
}

func (r *Runtime) examineUserNamespaces(info system.Info) HostFinding {
	const name = "user namespace"
	switch {
	case option(info, "rootless"):
		return HostFinding{Name: name, Detail: "the daemon is rootless"}
	case option(info, "userns"):
		return HostFinding{Name: name, Detail: "users are remapped"}
	case r.config.Runtime == gvisor:
		return HostFinding{Name: name, Detail: "not used; a sandbox's users are gVisor's own"}
	default:
		return HostFinding{name, "not used: a user of a sandbox is the same number on the host", `Set "userns-remap": "default" in the daemon's configuration, or run it rootless.`}
	}
}

func (r *Runtime) examineSecurityModule(info system.Info) HostFinding {
	const name = "security module"
	for _, module := range []string{"apparmor", "selinux"} {
		if option(info, module) {
			return HostFinding{Name: name, Detail: module}
		}
	}
	if r.config.Runtime == gvisor {
		return HostFinding{Name: name, Detail: "neither AppArmor nor SELinux; gVisor stands before the host's kernel"}
	}
	return HostFinding{name, "neither AppArmor nor SELinux: the system call filter stands alone", "Use a kernel with one of them, and enable it for Docker."}
}

// option says whether the daemon lists a security option.
func option(info system.Info, name string) bool {
	options, err := system.DecodeSecurityOptions(info.SecurityOptions)
	return err == nil && slices.ContainsFunc(options, func(o system.SecurityOpt) bool { return o.Name == name })
}

func examineLimits(info system.Info) HostFinding {
	var lack []string
	for name, has := range map[string]bool{"memory": info.MemoryLimit, "swap": info.SwapLimit, "processors": info.CPUCfsQuota, "processes": info.PidsLimit} {
		if !has {
			lack = append(lack, name)
		}
	}
	slices.Sort(lack)
	if len(lack) > 0 {
		return HostFinding{"limits", "the kernel does not limit " + strings.Join(lack, ", "), "Boot with these controllers (cgroup_enable=memory swapaccount=1), or use cgroup version 2."}
	}
	return HostFinding{Name: "limits", Detail: "cgroup version " + info.CgroupVersion}
}

func examineStorage(info system.Info) HostFinding {
	found := HostFinding{Name: "storage", Detail: info.Driver}
	for _, status := range info.DriverStatus {
		if status[0] == "Backing Filesystem" {
			found.Detail += " on " + status[1]
		}
	}
	if slices.Contains([]string{"aufs", "devicemapper", "vfs", "overlay"}, info.Driver) {
		found.Remedy = "Use the storage driver overlay2."
	}
	return found
}

func examineRegistries(info system.Info) HostFinding {
	found := HostFinding{Name: "registries", Detail: "only with TLS"}
	if info.RegistryConfig == nil {
		return found
	}
	for _, block := range info.RegistryConfig.InsecureRegistryCIDRs {
		if loopback := block.String(); loopback != "127.0.0.0/8" && loopback != "::1/128" {
			found.Detail, found.Remedy = "without TLS at "+loopback, "Take it off insecure-registries in the daemon's configuration."
		}
	}
	for name, index := range info.RegistryConfig.IndexConfigs {
		if index != nil && !index.Secure {
			found.Detail, found.Remedy = "without TLS at "+name, "Take it off insecure-registries in the daemon's configuration."
		}
	}
	return found
}
