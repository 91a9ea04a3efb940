package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

const (
	magic       = 0xF5
	headerSize  = 8 // magic, type, stream (4), payload length (2)
	trailerSize = 4 // CRC-32C of the connection's nonce, header and payload

	// resyncZeros is how many zero bytes in a row end the garbage after a corrupt frame. What is
	// left of a Preamble is always longer.
	resyncZeros = 32
)

// ErrCorrupt is a frame that cannot be one: wrong magic, length or checksum.
var ErrCorrupt = errors.New("corrupt frame")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Frame is one unit of the stream.
type Frame struct {
	Type    Type
	Stream  uint32
	Payload []byte // at most MaxPayload
}

// Append adds f's encoding to b, as it is before a connection has its nonce: of a Hello and a HelloOK.
// The payload must not exceed MaxPayload.
func (f Frame) Append(b []byte) []byte { return Seal(0).Append(b, f) }

// Seal ties frames to one connection: their checksums begin with it. A frame of any other connection
// is corrupt, so that two clients of one toolbox can never be taken for each other. The zero Seal is
// that of no connection.
type Seal uint32

// SealOf is the seal of the connection that began with nonce.
func SealOf(nonce [NonceSize]byte) Seal { return Seal(crc32.Checksum(nonce[:], castagnoli)) }

// Append adds f's sealed encoding to b. Hello and HelloOK are never sealed. The payload must not
// exceed MaxPayload.
func (s Seal) Append(b []byte, f Frame) []byte {
	if len(f.Payload) > MaxPayload {
		panic("wire: payload over the frame limit")
	}
	start := len(b)
	b = append(b, magic, byte(f.Type))
	b = binary.BigEndian.AppendUint32(b, f.Stream)
	b = binary.BigEndian.AppendUint16(b, uint16(len(f.Payload)))
	b = append(b, f.Payload...)
	return binary.BigEndian.AppendUint32(b, s.checksum(f.Type, b[start:]))
}

func (s Seal) checksum(t Type, b []byte) uint32 {
	if t == Hello || t == HelloOK {
		s = 0
	}
	return crc32.Update(uint32(s), castagnoli, b)
}

// Reader decodes frames. It holds at most one frame in memory.
type Reader struct {
	// Seal is what the frames have to bear.
	Seal Seal

	src *bufio.Reader
	buf [MaxFrame]byte
}

// NewReader reads frames from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{src: bufio.NewReaderSize(r, MaxFrame)}
}

// Next returns the next frame; zero bytes before it are ignored. The payload is valid until the
// following call. ErrCorrupt leaves the position unknown: give up, or call Resync.
func (r *Reader) Next() (Frame, error) {
	first, err := r.src.ReadByte()
	for err == nil && first == 0 {
		first, err = r.src.ReadByte()
	}
	if err != nil {
		return Frame{}, err
	}
	if first != magic {
		return Frame{}, ErrCorrupt
	}
	r.buf[0] = first
	if _, err := io.ReadFull(r.src, r.buf[1:headerSize]); err != nil {
		return Frame{}, unexpected(err)
	}
	size := int(binary.BigEndian.Uint16(r.buf[6:headerSize]))
	if size > MaxPayload {
		return Frame{}, ErrCorrupt
	}
	end := headerSize + size
	if _, err := io.ReadFull(r.src, r.buf[headerSize:end+trailerSize]); err != nil {
		return Frame{}, unexpected(err)
	}
	if r.Seal.checksum(Type(r.buf[1]), r.buf[:end]) != binary.BigEndian.Uint32(r.buf[end:]) {
		return Frame{}, ErrCorrupt
	}
	return Frame{
		Type:    Type(r.buf[1]),
		Stream:  binary.BigEndian.Uint32(r.buf[2:6]),
		Payload: r.buf[headerSize:end],
	}, nil
}

// Resync skips to a place where a frame may begin: behind a run of zero bytes.
func (r *Reader) Resync() error {
	for zeros := 0; zeros < resyncZeros; {
		b, err := r.src.ReadByte()
		if err != nil {
			return err
		}
		zeros++
		if b != 0 {
			zeros = 0
		}
	}
	return nil
}

// skipTo discards bytes until it has read exactly the bytes of want.
func (r *Reader) skipTo(want []byte) error {
	last := make([]byte, 0, 64*len(want)) // the newest bytes, shifted when full
	for {
		b, err := r.src.ReadByte()
		if err != nil {
			return err
		}
		if len(last) == cap(last) {
			last = append(last[:0], last[len(last)-len(want)+1:]...)
		}
		if last = append(last, b); bytes.HasSuffix(last, want) {
			return nil
		}
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
