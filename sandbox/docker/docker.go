// Package docker makes sandboxes as Docker containers. It is the only place that knows Docker's
// client. The daemon may be on another machine: nothing here relies on paths of this one.
package docker

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
)

// Limits on one request to the daemon. A daemon that does not answer a simple question within
// answerWithin is unavailable; work that it has begun may take up to workWithin on a busy host.
const (
	answerWithin = 5 * time.Second
	workWithin   = 60 * time.Second
)

// Config says which daemon to use and as whom.
type Config struct {
	// Host is the daemon's address as in DOCKER_HOST; "" means the local socket.
	Host string
	// Image is the default image of sandboxes; it must be on the host already.
	Image string
	// Runtime is runc or runsc; "" leaves the choice to the daemon.
	Runtime string
	// Instance marks what belongs to this installation; nothing of another is ever touched.
	Instance string
	// CAFile holds the authorities that programs in sandboxes trust, in PEM; "" means this host's.
	CAFile string
}

// Runtime is a sandbox.Runtime on one Docker daemon.
type Runtime struct {
	config  Config
	api     *client.Client
	volumes string        // what names of toolbox volumes begin with
	oldKept time.Duration // how long an unused toolbox volume of another build stays
	trust   trust

	mu       sync.Mutex
	host     string  // the daemon's id, once known
	data     *string // its data folder on this machine, once known; "" when it is elsewhere
	disk     sandbox.DiskBudget
	images   map[string]bool    // ids of images that were found to hold what a sandbox needs
	filled   map[string]bool    // names of toolbox volumes that were found whole
	contents map[string]content // of toolbox volumes, by architecture

	checking sync.Mutex // serialises the slow first look at an image or a toolbox volume
}

var _ sandbox.Runtime = (*Runtime)(nil)

// New prepares a client; it does not talk to the daemon yet.
func New(config Config) (*Runtime, error) {
	if config.Instance == "" {
		return nil, core.Fail(core.Invalid, "invalid_configuration", "The sandbox runtime needs an installation id.")
	}
	if config.Host == "" {
		config.Host = client.DefaultDockerHost
	}
	trust, err := readTrust(config.CAFile)
	if err != nil {
		return nil, err
	}
	api, err := client.NewClientWithOpts(client.WithHost(config.Host), client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, core.Fail(core.Invalid, "invalid_configuration", "DOCKER_HOST is not an address that the Docker client understands.").Because(err)
	}
	return &Runtime{
		config: config, api: api, volumes: "toolbox-", oldKept: otherBuilds, trust: trust,
		images: map[string]bool{}, filled: map[string]bool{}, contents: map[string]content{},
	}, nil
}

// Close frees the idle connections. Streams that were attached stay open.
func (r *Runtime) Close() error { return r.api.Close() }

// Host is the daemon's own id.
func (r *Runtime) Host(ctx context.Context) (string, error) {
	r.mu.Lock()
	host := r.host
	r.mu.Unlock()
	if host != "" {
		return host, nil
	}
	info, err := r.info(ctx)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.host = info.ID
	return info.ID, nil
}

// Capabilities asks the daemon what it offers, and looks for the default image.
func (r *Runtime) Capabilities(ctx context.Context) (sandbox.Capabilities, error) {
	info, err := r.info(ctx)
	if err != nil {
		return sandbox.Capabilities{}, err
	}
	found := sandbox.Capabilities{
		Runtime:       r.config.Runtime,
		ServerVersion: info.ServerVersion,
		CgroupVersion: info.CgroupVersion,
		ImageRef:      r.config.Image,
		MemoryBytes:   info.MemTotal,
		Processors:    info.NCPU,
	}
	if found.Runtime == "" {
		found.Runtime = info.DefaultRuntime
	}
	_, found.RuntimeKnown = info.Runtimes[found.Runtime]
	found.Seccomp = option(info, "seccomp")
	_, err = r.image(ctx, r.config.Image)
	found.ImageReady = err == nil
	found.DiskBudget, err = r.budget(ctx)
	return found, err
}

func (r *Runtime) info(ctx context.Context) (system.Info, error) {
	var info system.Info
	err := r.ask(ctx, "read the daemon's state", func(ctx context.Context) (err error) {
		info, err = r.api.Info(ctx)
		return err
	})
	return info, err
}

// ask is one simple question to the daemon.
func (r *Runtime) ask(ctx context.Context, doing string, question func(context.Context) error) error {
	return bounded(ctx, answerWithin, doing, question)
}

// work is one request that may take long on a busy host; a daemon that hangs is found out by a ping first.
func (r *Runtime) work(ctx context.Context, doing string, request func(context.Context) error) error {
	err := r.ask(ctx, "reach the daemon", func(ctx context.Context) error {
		_, err := r.api.Ping(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return bounded(ctx, workWithin, doing, request)
}

func bounded(ctx context.Context, limit time.Duration, doing string, request func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := request(limited)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	return translate(doing, err)
}

// hijacker is a client whose connections give up at the deadline of the context that dials them.
// The stock client waits for the answer to an attach without any limit. It is used for one request.
func (r *Runtime) hijacker() (*client.Client, error) {
	var dialer net.Dialer
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if deadline, ok := ctx.Deadline(); ok {
			err = conn.SetDeadline(deadline)
		}
		return conn, err
	}
	return client.NewClientWithOpts(client.WithHost(r.config.Host), client.WithDialContext(dial), client.WithVersion(r.api.ClientVersion()))
}
