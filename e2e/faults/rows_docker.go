package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// dockerRows are failures of the sandbox host.
func dockerRows() []row {
	return []row{
		{"Docker is away when a session begins", func(ctx context.Context, b *bench) (string, error) {
			target, err := b.owner.Target(ctx, "mdlinks")
			if err != nil {
				return "", err
			}
			b.docker.down()
			id, err := b.createAt(ctx, target, "file "+b.newFile())
			if err != nil {
				return "", err
			}
			code, err := b.knownAway(ctx, id)
			if err := errors.Join(err, b.docker.up()); err != nil {
				return code, err
			}
			return code, b.goesOn(ctx, id)
		}},
		{"Docker is away when the worker starts", func(ctx context.Context, b *bench) (string, error) {
			b.docker.down()
			if err := b.newWorker(ctx, nil); err != nil {
				return "", err
			}
			name := b.newFile()
			id, err := b.create(ctx, "mdlinks", "file "+name)
			if err != nil {
				return "", err
			}
			if err := b.staysQueued(ctx, id, 2*time.Second); err != nil {
				return "", err
			}
			if err := b.docker.up(); err != nil {
				return "", err
			}
			return "waits", b.goesOn(ctx, id, name)
		}},
		{"Docker goes away in the middle of a turn", func(ctx context.Context, b *bench) (string, error) {
			return b.duringTurn(ctx, func(string) error {
				b.docker.down()
				return nil
			}, b.docker.up, "sandbox_lost", "runtime_unavailable")
		}},
		{"F14: the image is missing", func(ctx context.Context, b *bench) (string, error) {
			if err := b.newWorker(ctx, map[string]string{"SANDBOX_IMAGE": "agent-sandboxing/none:1"}); err != nil {
				return "", err
			}
			id, err := b.create(ctx, "mdlinks", "file "+b.newFile())
			if err != nil {
				return "", err
			}
			code, err := b.failed(ctx, id, "image_missing")
			if err := errors.Join(err, b.newWorker(ctx, nil)); err != nil {
				return code, err
			}
			return code, b.goesOn(ctx, id)
		}},
		{"F18: the container is removed between two turns", func(ctx context.Context, b *bench) (string, error) {
			id, name, err := b.begun(ctx, "mdlinks")
			if err != nil {
				return "", err
			}
			if err := b.removeContainer(ctx, id); err != nil {
				return "", err
			}
			return "rebuilt", b.goesOn(ctx, id, name)
		}},
		{"F18: the container is removed during a command", func(ctx context.Context, b *bench) (string, error) {
			return b.containerGone(ctx, "rm", "-f")
		}},
		{"F18: the container is killed during a command", func(ctx context.Context, b *bench) (string, error) {
			return b.containerGone(ctx, "kill")
		}},
		{"the host is lost with volume and mirror, and the branch moved", dockerHostLost},
		{"F18: the container is paused during a command, and cancelled", dockerPaused},
	}
}

// duringTurn makes a fault while a command of a turn runs, ends it when there is something to end, and
// sends the next message.
func (b *bench) duringTurn(ctx context.Context, begin func(id string) error, end func() error, codes ...string) (string, error) {
	id, name, err := b.working(ctx)
	if err != nil {
		return "", err
	}
	if err := begin(id); err != nil {
		return "", err
	}
	code, err := b.failed(ctx, id, codes...)
	if end != nil {
		err = errors.Join(err, end())
	}
	if err != nil {
		return code, err
	}
	return code, b.goesOn(ctx, id, name)
}

// dockerHostLost leaves nothing but the records: the base comes from GitHub by its commit, the work
// from the checkpoint.
func dockerHostLost(ctx context.Context, b *bench) (string, error) {
	id, name, err := b.begun(ctx, "stockroom")
	if err != nil {
		return "", err
	}
	if err := errors.Join(b.signal(ctx, "worker", syscall.SIGTERM), b.removeContainer(ctx, id), b.move(ctx, "stockroom")); err != nil {
		return "", err
	}
	volume, err := b.query(ctx, "SELECT volume FROM sandboxes WHERE session_id = '"+id+"' ORDER BY generation DESC LIMIT 1")
	if err != nil {
		return "", err
	}
	if _, err := b.host(ctx, "volume", "rm", volume); err != nil {
		return "", err
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(b.env["DATA_DIR"], "mirror")), b.start("worker", nil)); err != nil {
		return "", err
	}
	return "rebuilt", b.goesOn(ctx, id, name)
}

// dockerPaused freezes the container of a turn: the cancel has to do without it.
func dockerPaused(ctx context.Context, b *bench) (string, error) {
	id, name, err := b.working(ctx)
	if err != nil {
		return "", err
	}
	ref, err := b.container(ctx, id)
	if err != nil {
		return "", err
	}
	if _, err := b.host(ctx, "pause", ref); err != nil {
		return "", err
	}
	code, err := b.cancelled(ctx, id)
	if err != nil {
		return code, err
	}
	return code, b.goesOn(ctx, id, name)
}

// containerGone ends the container of a turn by a docker command.
func (b *bench) containerGone(ctx context.Context, command ...string) (string, error) {
	return b.duringTurn(ctx, func(id string) error {
		ref, err := b.container(ctx, id)
		if err != nil {
			return err
		}
		_, err = b.host(ctx, append(command, ref)...)
		return err
	}, nil, "sandbox_lost")
}
