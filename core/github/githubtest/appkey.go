package githubtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// appKey is the App's key pair. GitHub would keep the public half only.
type appKey struct {
	pem    []byte
	public *rsa.PublicKey
}

// openAppKey reads the key or makes one, PKCS #1 as GitHub hands them out.
func openAppKey(path string) (appKey, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return appKey{}, fmt.Errorf("make the App's key: %w", err)
		}
		data = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return appKey{}, fmt.Errorf("write the App's key: %w", err)
		}
	} else if err != nil {
		return appKey{}, fmt.Errorf("read the App's key: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return appKey{}, fmt.Errorf("%s holds no PEM block", path)
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		return appKey{}, fmt.Errorf("read the App's key: %w", err)
	}
	return appKey{pem: data, public: &key.PublicKey}, nil
}

// The refusals of a JWT, in GitHub's words.
var (
	errJWT       = errors.New("A JSON web token could not be decoded") //nolint:staticcheck // GitHub's own words
	errJWTIssuer = errors.New("Integration not found")                 //nolint:staticcheck // GitHub's own words
	errJWTFuture = errors.New("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	errJWTExp    = errors.New("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	errJWTExpFar = errors.New("'Expiration time' claim ('exp') is too far in the future")
)

// verify checks signature and claims of an App JWT as GitHub does: RS256 only, an issuer that is
// the App, issued in the past, at most ten minutes to live.
func (k appKey) verify(jwt string, a app, now time.Time) error {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return errJWT
	}
	var header struct {
		Alg string `json:"alg"`
	}
	var claims struct {
		Iss json.RawMessage `json:"iss"`
		Iat int64           `json:"iat"`
		Exp int64           `json:"exp"`
	}
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || decodePart(parts[0], &header) != nil || decodePart(parts[1], &claims) != nil || header.Alg != "RS256" {
		return errJWT
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(k.public, crypto.SHA256, sum[:], sig) != nil {
		return errJWT
	}
	issuer := strings.Trim(string(claims.Iss), `"`)
	switch {
	case issuer != strconv.FormatInt(a.ID, 10) && issuer != a.ClientID:
		return errJWTIssuer
	case claims.Iat > now.Unix():
		return errJWTFuture
	case claims.Exp <= now.Unix():
		return errJWTExp
	case claims.Exp > now.Add(10*time.Minute).Unix():
		return errJWTExpFar
	}
	return nil
}

func decodePart(part string, v any) error {
	data, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}
