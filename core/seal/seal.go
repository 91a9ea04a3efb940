// Package seal encrypts single database columns with AES-256-GCM. Every sealed value names the key
// that sealed it, so keys can be rotated: the first of the list encrypts, all of them decrypt.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const (
	keyBytes  = 32
	maxID     = 32
	formatOne = 1 // format, length of the key id, key id, nonce, ciphertext with tag
)

// ErrUnreadable is a sealed value that no key of the ring opens: cut, changed, moved to another
// row, or sealed with a key that is gone.
var ErrUnreadable = errors.New("the sealed value cannot be opened with any known key")

// Keyring holds the keys of one installation. It never prints them.
type Keyring struct {
	first string
	keys  map[string]cipher.AEAD
}

// Parse reads a comma list of `id:base64 of 32 bytes`. Errors name the position and the id, never a key.
func Parse(list string) (*Keyring, error) {
	ring := &Keyring{keys: map[string]cipher.AEAD{}}
	for i, item := range strings.Split(list, ",") {
		id, encoded, found := strings.Cut(strings.TrimSpace(item), ":")
		if !found || !validID(id) {
			return nil, fmt.Errorf("encryption key %d is not written as id:base64 with an id of 1 to %d letters, digits, - or _", i+1, maxID)
		}
		if _, twice := ring.keys[id]; twice {
			return nil, fmt.Errorf("encryption key id %q is there twice", id)
		}
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) != keyBytes {
			return nil, fmt.Errorf("encryption key %q is not the base64 form of %d bytes", id, keyBytes)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("encryption key %q: %w", id, err)
		}
		if ring.keys[id], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, fmt.Errorf("encryption key %q: %w", id, err)
		}
		if ring.first == "" {
			ring.first = id
		}
	}
	return ring, nil
}

// NewKey makes a random key in the form that Parse reads.
func NewKey(id string) string {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails: it ends the program instead
	return id + ":" + base64.StdEncoding.EncodeToString(key)
}

// Place is the associated data of one column of one row; a value moved elsewhere does not open.
func Place(table, column, rowID string) string { return table + ":" + column + ":" + rowID }

// Seal encrypts plain for place with the first key.
func (k *Keyring) Seal(plain []byte, place string) []byte {
	sealed := append([]byte{formatOne, byte(len(k.first))}, k.first...)
	return k.keys[k.first].Seal(sealed, nil, plain, []byte(place))
}

// Open decrypts what Seal made for the same place. The error is ErrUnreadable.
func (k *Keyring) Open(sealed []byte, place string) ([]byte, error) {
	if len(sealed) < 2 || sealed[0] != formatOne || len(sealed) < 2+int(sealed[1]) {
		return nil, ErrUnreadable
	}
	body := sealed[2+int(sealed[1]):]
	key, known := k.keys[string(sealed[2:len(sealed)-len(body)])]
	if !known {
		return nil, ErrUnreadable
	}
	plain, err := key.Open(nil, nil, body, []byte(place))
	if err != nil {
		return nil, ErrUnreadable
	}
	return plain, nil
}

// String keeps the keys out of logs.
func (*Keyring) String() string { return "[keyring]" }

// GoString keeps the keys out of %#v.
func (*Keyring) GoString() string { return "[keyring]" }

func validID(id string) bool {
	if id == "" || len(id) > maxID {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) < 0
}
