package mirrortest

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
)

// Kinds of objects in a pack.
const (
	kindCommit   = 1
	kindTree     = 2
	kindBlob     = 3
	kindRefDelta = 7
)

// Objects collects git objects that no honest git would write, to be planted as a pack.
type Objects struct {
	packed [][]byte
	names  map[string]bool // of the objects that are in it
	z      *zlib.Writer
}

// Entry is one line of a tree; SHA "" stands for a small blob, which is added.
type Entry struct{ Mode, Name, SHA string }

// Blob adds a file's content and returns its name.
func (o *Objects) Blob(text string) string { return o.add("blob", kindBlob, []byte(text)) }

// Zeros adds a blob of n zero bytes, a thousandth of that in a pack, without ever holding it.
func (o *Objects) Zeros(n int64) string {
	sum := naming("blob", n)
	packed := o.deflate(io.TeeReader(io.LimitReader(zeros{}, n), sum))
	return o.keep(hex.EncodeToString(sum.Sum(nil)), append(packHeader(kindBlob, n), packed...))
}

// Tree adds a tree of exactly these entries in this order.
func (o *Objects) Tree(entries ...Entry) string {
	var raw bytes.Buffer
	for _, e := range entries {
		if e.SHA == "" {
			e.SHA = o.Blob("x\n")
		}
		fmt.Fprintf(&raw, "%s %s\x00", e.Mode, e.Name)
		raw.Write(unhex(e.SHA))
	}
	return o.add("tree", kindTree, raw.Bytes())
}

// Folder adds a tree in the order that git wants.
func (o *Objects) Folder(entries ...Entry) string {
	order := func(e Entry) string {
		if e.Mode == "40000" {
			return e.Name + "/"
		}
		return e.Name
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(order(a), order(b)) })
	return o.Tree(entries...)
}

// File is the entry of a plain file with this text.
func (o *Objects) File(name, text string) Entry { return Entry{"100644", name, o.Blob(text)} }

// Nested wraps a tree into depth folders.
func (o *Objects) Nested(tree string, depth int) string {
	for range depth {
		tree = o.Tree(Entry{"40000", "d", tree})
	}
	return tree
}

// Commit adds a commit of a tree.
func (o *Objects) Commit(tree string, parents ...string) string {
	text := "tree " + tree + "\n"
	for _, p := range parents {
		text += "parent " + p + "\n"
	}
	const who = "octo-dev <octo-dev@example.com> 1700000000 +0000"
	return o.add("commit", kindCommit, []byte(text+"author "+who+"\ncommitter "+who+"\n\nPlant\n"))
}

// RefDelta adds a delta on the object base, which need not be anywhere, that makes size bytes by
// copying the first part bytes of the base over and over. It has no name of its own.
func (o *Objects) RefDelta(base string, baseSize, part, size int64) {
	delta := append(varint(baseSize), varint(size)...)
	for left := size; left > 0; left -= part {
		n := min(part, left)
		delta = append(delta, 0x80|0x10|0x20|0x40, byte(n), byte(n>>8), byte(n>>16))
	}
	packed := append(packHeader(kindRefDelta, int64(len(delta))), unhex(base)...)
	o.packed = append(o.packed, append(packed, o.deflate(bytes.NewReader(delta))...))
}

// Pack is everything as one pack.
func (o *Objects) Pack() []byte { return o.PackOf(len(o.packed)) }

// PackOf says that there are count objects, whatever there are.
func (o *Objects) PackOf(count int) []byte {
	pack := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(count))
	pack = append(pack, bytes.Join(o.packed, nil)...)
	sum := sha1.Sum(pack)
	return append(pack, sum[:]...)
}

func (o *Objects) add(kind string, code byte, data []byte) string {
	sum := naming(kind, int64(len(data)))
	_, _ = sum.Write(data) // never fails
	return o.keep(hex.EncodeToString(sum.Sum(nil)), append(packHeader(code, int64(len(data))), o.deflate(bytes.NewReader(data))...))
}

func (o *Objects) keep(name string, packed []byte) string {
	if !o.names[name] {
		if o.names == nil {
			o.names = map[string]bool{}
		}
		o.names[name] = true
		o.packed = append(o.packed, packed)
	}
	return name
}

func naming(kind string, size int64) hash.Hash {
	sum := sha1.New()
	fmt.Fprintf(sum, "%s %d\x00", kind, size)
	return sum
}

// packHeader is an object's kind and size: four bits, then seven a byte.
func packHeader(kind byte, size int64) []byte {
	first := kind<<4 | byte(size&15)
	if size >>= 4; size == 0 {
		return []byte{first}
	}
	return append([]byte{first | 0x80}, varint(size)...)
}

func varint(n int64) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func (o *Objects) deflate(data io.Reader) []byte {
	if o.z == nil {
		o.z, _ = zlib.NewWriterLevel(nil, zlib.BestSpeed) // a level that there is
	}
	var out bytes.Buffer
	o.z.Reset(&out)
	_, err := io.Copy(o.z, data)
	if err = errors.Join(err, o.z.Close()); err != nil {
		panic(err) // neither side can fail
	}
	return out.Bytes()
}

// unhex panics on what is no object name: a fixture is wrong.
func unhex(name string) []byte {
	raw, err := hex.DecodeString(strings.TrimSpace(name))
	if err != nil || len(raw) != sha1.Size {
		panic("no object name: " + name)
	}
	return raw
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
