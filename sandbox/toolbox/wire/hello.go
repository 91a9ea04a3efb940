package wire

import (
	"bytes"
	"encoding/binary"
	"io"
)

// HelloPayload is what Hello and HelloOK carry: the nonce and the sender's version.
func HelloPayload(nonce [NonceSize]byte, version uint16) []byte {
	return binary.BigEndian.AppendUint16(nonce[:], version)
}

// ParseHello takes a Hello's payload apart; false when it is none.
func ParseHello(p []byte) (nonce [NonceSize]byte, version uint16, ok bool) {
	if len(p) != NonceSize+2 {
		return nonce, 0, false
	}
	copy(nonce[:], p)
	return nonce, binary.BigEndian.Uint16(p[NonceSize:]), true
}

// AwaitEcho discards everything before the HelloOK frame that carries nonce and returns the version
// in it. From there on it reads the frames of that connection only.
func (r *Reader) AwaitEcho(nonce [NonceSize]byte) (uint16, error) {
	head := Frame{Type: HelloOK, Payload: HelloPayload(nonce, 0)}.Append(nil)
	// Header and nonce are known; the version and checksum behind them are not.
	known := head[:headerSize+NonceSize]
	if err := r.skipTo(known); err != nil {
		return 0, err
	}
	rest := make([]byte, 2+trailerSize)
	if _, err := io.ReadFull(r.src, rest); err != nil {
		return 0, unexpected(err)
	}
	version := binary.BigEndian.Uint16(rest)
	whole := Frame{Type: HelloOK, Payload: HelloPayload(nonce, version)}.Append(nil)
	if !bytes.Equal(whole[len(known):], rest) {
		return 0, ErrCorrupt
	}
	r.Seal = SealOf(nonce)
	return version, nil
}
