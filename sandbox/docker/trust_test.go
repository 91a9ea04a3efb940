package docker

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent-sandboxing/core"
)

// The file was made by the JDK's keytool from the certificate beside it.
func TestKeyStore_IsTheJDKs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	certificates, err := parseBundle(text, true)
	if err != nil || len(certificates) != 1 {
		t.Fatalf("%d certificates, %v", len(certificates), err)
	}
	theirs, err := os.ReadFile("testdata/ca.jks")
	if err != nil {
		t.Fatal(err)
	}
	const made = 4 + 4 + 4 + 4 + 2 + len("ca-0") // where the time is
	body := bytes.Clone(theirs[:len(theirs)-20])
	if !bytes.Equal(sealed(body), theirs) {
		t.Error("the checksum differs from the JDK's")
	}
	copy(body[made:], make([]byte, 8))
	if ours := keyStore(certificates); !bytes.Equal(ours, sealed(body)) {
		t.Errorf("ours\n%x\ntheirs\n%x", ours, theirs)
	}
}

func TestReadTrust_TakesTheHostsOrTheOperators(t *testing.T) {
	t.Parallel()
	host, err := readTrust("")
	if err != nil {
		t.Fatal(err)
	}
	if names := strings.Join(host.env, " "); len(host.files) != 1 || strings.Contains(names, "JAVA") || !strings.Contains(names, "COMMAND_ENV_SSL_CERT_FILE=/opt/toolbox/ca.pem") {
		t.Errorf("the host's: %d files, %s", len(host.files), names)
	}
	own, err := readTrust("testdata/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	if len(own.files) != 2 || len(own.env) != 8 {
		t.Errorf("the operator's: %d files, %v", len(own.files), own.env)
	}
	block, _ := pem.Decode(own.files[0].data)
	if c, err := x509.ParseCertificate(block.Bytes); err != nil || c.Subject.CommonName != "Test Authority" {
		t.Errorf("%v, %v", c, err)
	}
}

func TestReadTrust_RefusesWhatIsNoBundle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"empty":   "",
		"text":    "hello",
		"key":     "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"corrupt": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"huge":    strings.Repeat("x", maxBundle+1),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readTrust(path); core.CodeOf(err) != "invalid_configuration" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := readTrust(filepath.Join(dir, "absent")); core.CodeOf(err) != "invalid_configuration" {
		t.Errorf("absent: %v", err)
	}
}
