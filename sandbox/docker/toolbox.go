package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"agent-sandboxing/sandbox/toolbox"
)

// inject makes sure that the volume with this build's toolbox, and what sandboxes trust, is on the host
// and whole, and returns its name. It is filled through a container that is never started: a bind path would have to exist on the
// daemon's host, and a read-only root refuses copies.
func (r *Runtime) inject(ctx context.Context, architecture, imageID string) (string, error) {
	content, err := r.content(architecture)
	if err != nil {
		return "", err
	}
	name, files := r.volumes+content.name, content.files
	if r.knows(r.filled, name) && r.present(ctx, name) {
		return name, nil
	}
	r.checking.Lock()
	defer r.checking.Unlock()
	if r.knows(r.filled, name) && r.present(ctx, name) {
		return name, nil
	}
	if err := r.work(ctx, "make the toolbox volume", func(ctx context.Context) error {
		_, err := r.api.VolumeCreate(ctx, volume.CreateOptions{Name: name, Labels: map[string]string{labelProduct: "true"}})
		return err
	}); err != nil {
		return "", err
	}
	ref, err := r.carrier(ctx, name, imageID)
	if err != nil {
		return "", err
	}
	defer r.discard(ctx, ref)
	whole, err := r.holds(ctx, ref, files)
	if err != nil {
		return "", err
	}
	if !whole {
		if err := r.unpack(ctx, ref, toolboxDir, files...); err != nil {
			return "", err
		}
	}
	r.learn(r.filled, name)
	r.collect(ctx)
	return name, nil
}

// present is false when somebody has removed the volume since it was filled. Docker gives a container that
// is made at that moment an empty one, without our label.
func (r *Runtime) present(ctx context.Context, name string) bool {
	ours := false
	err := r.ask(ctx, "look for the toolbox volume", func(ctx context.Context) error {
		there, err := r.api.VolumeInspect(ctx, name)
		ours = there.Labels[labelProduct] != ""
		return err
	})
	return err == nil && ours
}

// otherBuilds is how long the toolbox volume of another build stays when no container has it: long enough
// for two versions on one host not to take them from each other again and again.
const otherBuilds = 24 * time.Hour

// collect removes the toolbox volumes of other builds that no container has any more. A worker that wants
// one of them again fills it anew.
func (r *Runtime) collect(ctx context.Context) {
	r.mu.Lock()
	current := maps.Clone(r.filled)
	r.mu.Unlock()
	if len(current) == 0 { // this build's is not known yet
		return
	}
	_ = r.ask(ctx, "look for old toolbox volumes", func(ctx context.Context) error { // the next time is soon enough
		there, err := r.api.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(
			filters.Arg("name", r.volumes), filters.Arg("label", labelProduct), filters.Arg("dangling", "true"))})
		if err != nil {
			return err
		}
		for _, v := range there.Volumes {
			if strings.HasPrefix(v.Name, r.volumes) && !current[v.Name] && older(v.CreatedAt, r.oldKept) {
				err = errors.Join(err, r.api.VolumeRemove(ctx, v.Name, false))
			}
		}
		return err
	})
}

// carrierAge is when a carrier belongs to a worker that is dead: filling takes a second.
const carrierAge = 20 * time.Second

// carrier makes the never-started container. Its fixed name is the lock among workers that fill the
// same volume at once; one that a dead worker left behind is taken over.
func (r *Runtime) carrier(ctx context.Context, volumeName, imageID string) (ref string, err error) {
	config := container.Config{
		Image: imageID, Entrypoint: []string{toolboxPath}, NetworkDisabled: true,
		Labels: helper(r.config.Instance),
	}
	host := container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{
		{Type: mount.TypeVolume, Source: volumeName, Target: toolboxDir, VolumeOptions: &mount.VolumeOptions{NoCopy: true}},
	}}
	carrierName := "fill-" + volumeName
	err = r.work(ctx, "make the container that fills the toolbox volume", func(ctx context.Context) error {
		for {
			// The daemon goes on after a cancel, and then nobody would know of what it made.
			whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), workWithin)
			made, err := r.api.ContainerCreate(whole, &config, &host, nil, nil, carrierName)
			cancel()
			if err == nil && ctx.Err() != nil {
				r.discard(ctx, made.ID)
				return ctx.Err()
			}
			if err == nil {
				ref = made.ID
				return nil
			}
			if !cerrdefs.IsConflict(err) {
				return err
			}
			if other, err := r.api.ContainerInspect(ctx, carrierName); err == nil && older(other.Created, carrierAge) {
				_ = r.api.ContainerRemove(ctx, other.ID, container.RemoveOptions{Force: true})
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return ref, err
}

// content is what a toolbox volume holds, and the name that tells it from others.
type content struct {
	name  string
	files []file
}

// content is made once for each architecture: to read and hash the program takes longer than all else
// in a claim.
func (r *Runtime) content(architecture string) (content, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.contents[architecture]; ok {
		return known, nil
	}
	program, sum, err := toolbox.Binary(architecture)
	if err != nil {
		return content{}, err
	}
	files := append([]file{{name: "toolboxd", mode: 0o555, data: program}}, r.trust.files...)
	made := content{name: nameOf(sum, files), files: files}
	r.contents[architecture] = made
	return made, nil
}

// nameOf tells volumes apart by what is in them: the toolbox's own sum when that is all.
func nameOf(sum string, files []file) string {
	if len(files) == 1 {
		return sum
	}
	digest := sha256.New()
	for _, f := range files {
		fmt.Fprintf(digest, "%s %d\n", f.name, len(f.data))
		digest.Write(f.data)
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// holds says whether the volume already has exactly these files.
func (r *Runtime) holds(ctx context.Context, ref string, files []file) (bool, error) {
	missing := map[string][]byte{}
	for _, f := range files {
		missing[f.name] = f.data
	}
	err := r.work(ctx, "read the toolbox volume", func(ctx context.Context) error {
		stream, _, err := r.api.CopyFromContainer(ctx, ref, toolboxDir)
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = stream.Close() }()
		for archive := tar.NewReader(stream); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			name := path.Base(header.Name)
			there, err := io.ReadAll(io.LimitReader(archive, int64(len(missing[name]))+1))
			if err != nil {
				return err
			}
			if bytes.Equal(there, missing[name]) {
				delete(missing, name)
			}
		}
	})
	return len(missing) == 0, err
}

// file is one entry to put into a container; one whose name ends in / is a folder.
type file struct {
	name string
	mode int64
	uid  int
	data []byte
}

// unpack copies files into a folder of a container, started or not.
func (r *Runtime) unpack(ctx context.Context, ref, dir string, files ...file) error {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	var err error
	for _, f := range files {
		header := tar.Header{Name: f.name, Mode: f.mode, Uid: f.uid, Gid: f.uid, Size: int64(len(f.data)), Typeflag: tar.TypeReg}
		if f.data == nil {
			header.Typeflag = tar.TypeDir
		}
		err = errors.Join(err, w.WriteHeader(&header))
		if f.data != nil {
			_, writeErr := w.Write(f.data)
			err = errors.Join(err, writeErr)
		}
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	return r.work(ctx, "copy files into the container", func(ctx context.Context) error {
		return r.api.CopyToContainer(ctx, ref, dir, &archive, container.CopyToContainerOptions{})
	})
}

func older(created string, than time.Duration) bool {
	at, err := time.Parse(time.RFC3339Nano, created)
	return err == nil && time.Since(at) > than
}
