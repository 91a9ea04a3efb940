package server

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"strings"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// Object types of a pack.
const (
	packTree = 2
	packBlob = 3
)

// objects are what a tree needs and the base has not.
type objects struct {
	known map[string]bool // of the base, and those collected already
	trees [][]byte        // contents
	blobs []leaf
}

// collect builds the trees above leaves, which are sorted, and returns the root's name.
func (o *objects) collect(leaves []leaf) string {
	for _, l := range leaves {
		if l.mode != modeGitlink && !o.known[l.hash] {
			o.known[l.hash] = true
			o.blobs = append(o.blobs, l)
		}
	}
	return o.tree(leaves, 0)
}

// tree builds the tree of leaves whose paths have their first skip bytes in common. Leaves of one
// folder lie together, and folders in the order that git wants, because of the sorting.
func (o *objects) tree(leaves []leaf, skip int) string {
	var content bytes.Buffer
	add := func(mode, name, sha string) {
		content.WriteString(mode + " " + name + "\x00")
		raw, _ := hex.DecodeString(sha) // made here, or checked
		content.Write(raw)
	}
	for i := 0; i < len(leaves); {
		name, _, below := strings.Cut(leaves[i].path[skip:], "/")
		if !below {
			add(leaves[i].mode, name, leaves[i].hash)
			i++
			continue
		}
		prefix := leaves[i].path[:skip+len(name)+1]
		end := i
		for end < len(leaves) && strings.HasPrefix(leaves[end].path, prefix) {
			end++
		}
		add(modeFolder, name, o.tree(leaves[i:end], len(prefix)))
		i = end
	}
	h := objectHash("tree", int64(content.Len()))
	_, _ = h.Write(content.Bytes())
	sha := hex.EncodeToString(h.Sum(nil))
	if !o.known[sha] {
		o.known[sha] = true
		o.trees = append(o.trees, content.Bytes())
	}
	return sha
}

// write sends the collected objects as one pack. They are whole: the base's objects that the trees
// name are not in it, which is what makes it thin.
func (o *objects) write(ctx context.Context, root *os.Root, to io.Writer) error {
	p := &packWriter{sum: sha1.New()}
	buffered := bufio.NewWriterSize(to, wire.MaxPayload)
	p.out = io.MultiWriter(p.sum, buffered)
	header := append([]byte("PACK"), 0, 0, 0, 2)
	if _, err := p.out.Write(binary.BigEndian.AppendUint32(header, uint32(len(o.trees)+len(o.blobs)))); err != nil {
		return err
	}
	for _, content := range o.trees {
		if err := p.object(packTree, int64(len(content)), bytes.NewReader(content)); err != nil {
			return err
		}
	}
	for _, l := range o.blobs {
		if err := p.blob(ctx, root, l); err != nil {
			return err
		}
	}
	if _, err := buffered.Write(p.sum.Sum(nil)); err != nil {
		return err
	}
	return buffered.Flush()
}

type packWriter struct {
	sum hash.Hash
	out io.Writer
	zip *zlib.Writer
}

// blob sends a leaf's content and makes sure that it is still what was hashed.
func (p *packWriter) blob(ctx context.Context, root *os.Root, l leaf) error {
	content, err := openLeaf(root, l)
	if err != nil {
		return wire.Fail(wire.SnapshotFailed, l.path)
	}
	defer content.Close()
	h := blobHash(l.size)
	reader := readerFunc(func(b []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return content.Read(b)
	})
	if err := p.object(packBlob, l.size, io.TeeReader(io.LimitReader(reader, l.size), h)); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != l.hash {
		return wire.Fail(wire.SnapshotFailed, l.path)
	}
	return nil
}

// openLeaf opens a file's bytes or a link's target.
func openLeaf(root *os.Root, l leaf) (io.ReadCloser, error) {
	if l.mode == modeLink {
		target, err := root.Readlink(l.path)
		return io.NopCloser(strings.NewReader(target)), err
	}
	info, err := root.Lstat(l.path)
	if err != nil {
		return nil, err
	}
	p := place{root: root, rel: l.path, info: info}
	file, err := p.open()
	if err != nil {
		return nil, err
	}
	return file, nil
}

// object writes one entry: type and size, then the content compressed.
func (p *packWriter) object(kind byte, size int64, content io.Reader) error {
	head := []byte{kind<<4 | byte(size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		head[len(head)-1] |= 0x80
		head = append(head, byte(size&0x7f))
	}
	if _, err := p.out.Write(head); err != nil {
		return err
	}
	if p.zip == nil {
		p.zip, _ = zlib.NewWriterLevel(p.out, zlib.BestSpeed) // the level is a valid one
	} else {
		p.zip.Reset(p.out)
	}
	if _, err := io.Copy(p.zip, content); err != nil {
		return err
	}
	return p.zip.Close()
}
