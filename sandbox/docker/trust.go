package docker

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the format of Java's key stores has it
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"unicode/utf16"

	"agent-sandboxing/core"
)

// maxBundle bounds a file of certificates. Bytes.
const maxBundle = 8 << 20

// commandEnv is what the name of a variable begins with in the container's environment when the toolbox
// is to give it, without this, to commands.
const commandEnv = "COMMAND_ENV_"

// trust is the authorities that programs in sandboxes trust, beside the toolbox in its volume.
type trust struct {
	files []file
	env   []string // of the container
}

// hostBundles are where Linux distributions keep the authorities that a host trusts.
func hostBundles() []string {
	return []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}
}

// readTrust reads the operator's certificates, or this host's when path is "". A host without any leaves
// the image its own. Programs that bring certificates of their own, such as Node, pip and JVMs, are only
// told of the operator's: the public ones they know.
func readTrust(path string) (trust, error) {
	invalid := func(cause error) (trust, error) {
		return trust{}, core.Fail(core.Invalid, "invalid_configuration", "SANDBOX_CA_FILE must be a readable file of certificates in PEM.").Because(cause)
	}
	own := path != ""
	paths := []string{path}
	if !own {
		paths = hostBundles()
	}
	var text []byte
	var err error
	for _, p := range paths {
		if text, err = readBundle(p); err == nil {
			break
		}
	}
	certificates, parseErr := parseBundle(text, own)
	switch {
	case own && err != nil:
		return invalid(err)
	case parseErr != nil:
		return invalid(parseErr)
	case len(certificates) == 0 && own:
		return invalid(nil)
	case len(certificates) == 0:
		return trust{}, nil
	}
	var bundle bytes.Buffer
	for _, c := range certificates {
		_ = pem.Encode(&bundle, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a buffer takes everything
	}
	t := trust{files: []file{{name: "ca.pem", mode: 0o444, data: bundle.Bytes()}}}
	t.tell(toolboxDir+"/ca.pem", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO")
	if own {
		t.files = append(t.files, file{name: "ca.jks", mode: 0o444, data: keyStore(certificates)})
		t.tell(toolboxDir+"/ca.pem", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO")
		t.tell("-Djavax.net.ssl.trustStore="+toolboxDir+"/ca.jks -Djavax.net.ssl.trustStoreType=jks", "JAVA_TOOL_OPTIONS")
	}
	return t, nil
}

func (t *trust) tell(value string, names ...string) {
	for _, name := range names {
		t.env = append(t.env, commandEnv+name+"="+value)
	}
}

func readBundle(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxBundle+1))
	if len(text) > maxBundle {
		return nil, fmt.Errorf("%s is above %d MiB", path, maxBundle>>20)
	}
	return text, err
}

// parseBundle returns each certificate once. In the host's bundle, what cannot be read is left out.
func parseBundle(text []byte, strict bool) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	seen := map[string]bool{}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" || seen[string(block.Bytes)] {
			continue
		}
		seen[string(block.Bytes)] = true
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil && strict {
			return nil, err
		}
		if err == nil {
			list = append(list, c)
		}
	}
	return list, nil
}

// keyStore makes a Java key store of trusted certificates. It is the format that every JVM reads, and
// reads without a password: that would only guard it against change, and it lies on a read-only mount.
func keyStore(certificates []*x509.Certificate) []byte {
	const magic, version, trusted = 0xFEEDFEED, 2, 2
	text := func(b []byte, s string) []byte { return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...) }
	b := binary.BigEndian.AppendUint32(nil, magic)
	b = binary.BigEndian.AppendUint32(b, version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(certificates)))
	for i, c := range certificates {
		b = binary.BigEndian.AppendUint32(b, trusted)
		b = text(b, fmt.Sprintf("ca-%d", i))
		b = binary.BigEndian.AppendUint64(b, 0) // made in 1970, so that the same certificates make the same store
		b = text(b, "X.509")
		b = binary.BigEndian.AppendUint32(b, uint32(len(c.Raw)))
		b = append(b, c.Raw...)
	}
	return sealed(b)
}

// sealed adds the checksum of a key store, with the password that such stores have by custom.
func sealed(b []byte) []byte {
	digest := sha1.New() //nolint:gosec // see keyStore
	for _, unit := range utf16.Encode([]rune("changeit")) {
		digest.Write(binary.BigEndian.AppendUint16(nil, unit))
	}
	digest.Write([]byte("Mighty Aphrodite"))
	digest.Write(b)
	return digest.Sum(b)
}
