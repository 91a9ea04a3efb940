package dockertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// load gives the daemon an image of the shared one. Its archive is made once and kept in the cache.
func (d *Daemon) load(ctx context.Context, image string) error {
	archive, err := archived(ctx, image)
	if err != nil {
		return err
	}
	_, err = d.Run(ctx, "load", "-q", "-i", archive)
	return err
}

func archived(ctx context.Context, image string) (string, error) {
	id, err := exec.CommandContext(ctx, "docker", "image", "inspect", "--format", "{{.Id}}", image).Output()
	if err != nil {
		return "", fmt.Errorf("the image %s is not on the shared Docker host (run scripts/build-image): %w", image, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "agent-sandboxing", "images")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	_, digest, _ := strings.Cut(strings.TrimSpace(string(id)), ":")
	path := filepath.Join(dir, digest+".tar")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return path, err
	}
	made, err := os.CreateTemp(dir, digest+".*") // two suites may make it at once: the name appears when it is whole
	if err != nil {
		return "", err
	}
	defer os.Remove(made.Name()) // nothing, once it is renamed
	cmd := exec.CommandContext(ctx, "docker", "save", image)
	cmd.Stdout = made
	if err := errors.Join(cmd.Run(), made.Close()); err != nil {
		return "", fmt.Errorf("docker save %s: %w", image, err)
	}
	return path, os.Rename(made.Name(), path)
}
