package github

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// A JWT begins a minute ago and ends in eight, because GitHub refuses one from the future and one
// that lives for more than ten minutes, and clocks differ.
const (
	jwtBackdate = time.Minute
	jwtLife     = 8 * time.Minute
)

// parseKey reads an RSA private key in PEM, PKCS #1 as GitHub hands out or PKCS #8.
func parseKey(data []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("the GitHub App private key is not PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the GitHub App private key is neither PKCS #1 nor PKCS #8")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("the GitHub App private key is not RSA")
	}
	return key, nil
}

// SignJWT is the proof of an App with this private key in PEM. Its issuer is the App's id; GitHub also
// knows it by its client id.
func SignJWT(key []byte, issuer string, now time.Time) (string, error) {
	parsed, err := parseKey(key)
	if err != nil {
		return "", err
	}
	return signAs(parsed, issuer, now)
}

func signJWT(key *rsa.PrivateKey, appID int64, now time.Time) (string, error) {
	return signAs(key, strconv.FormatInt(appID, 10), now)
}

// signAs proves to GitHub that we are the App. RS256 is the one algorithm it takes.
func signAs(key *rsa.PrivateKey, issuer string, now time.Time) (string, error) {
	claims := fmt.Sprintf(`{"iat":%d,"exp":%d,"iss":%q}`, now.Add(-jwtBackdate).Unix(), now.Add(jwtLife).Unix(), issuer)
	text := encodePart(`{"alg":"RS256","typ":"JWT"}`) + "." + encodePart(claims)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign the App's JWT: %w", err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig), nil
}

func encodePart(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
