package github_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core/github"
)

// GitHub refuses a proof from the future and one that lives above ten minutes, and clocks differ: ours
// begins a minute ago and ends in eight.
func TestSignJWT_LeavesRoomForClocksThatDiffer(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for kind, key := range map[string][]byte{"PKCS #8": newKey(t), "PKCS #1": newPKCS1(t)} {
		jwt, err := github.SignJWT(key, "Iv23abc", now)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		parts := strings.Split(jwt, ".")
		if len(parts) != 3 {
			t.Fatalf("%s: %d parts", kind, len(parts))
		}
		raw, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			t.Fatal(err)
		}
		var claims struct {
			Iat, Exp int64
			Iss      string
		}
		if err := json.Unmarshal(raw, &claims); err != nil || claims.Iat != now.Unix()-60 || claims.Exp != now.Unix()+8*60 || claims.Iss != "Iv23abc" {
			t.Errorf("%s: claims %s, %v", kind, raw, err)
		}
	}
	if _, err := github.SignJWT([]byte("no key"), "1", now); err == nil {
		t.Error("signed without a key")
	}
}

// newPKCS1 is a key in the form in which GitHub hands it out.
func newPKCS1(t *testing.T) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}
