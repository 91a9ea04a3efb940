package docker_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/egress"
)

// registry is a site, a git server and a package registry of each kind, on names below example.com with
// certificates of an authority of its own.
type registry struct {
	CAFile string
	*egress.Proxy
	plain, secure string // addresses
}

func newRegistry(t testing.TB) *registry {
	t.Helper()
	r := &registry{CAFile: filepath.Join(t.TempDir(), "ca.pem")}
	handler := r.hosts(t)
	plain := httptest.NewServer(handler)
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(handler)
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{r.certificate(t)}}
	secure.StartTLS()
	t.Cleanup(secure.Close)
	r.plain, r.secure = plain.Listener.Addr().String(), secure.Listener.Addr().String()
	var err error
	if r.Proxy, err = egress.New(egress.Options{Policies: r, Recorder: r, Resolver: r, Dial: r.dial}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *registry) EgressPolicy(context.Context, core.SessionID) (core.EgressPolicy, error) {
	return core.EgressPolicy{Mode: core.EgressAllowlist, Hosts: []string{"*.example.com"}}, nil
}

func (r *registry) RecordEgress(core.EgressRecord) {}

func (r *registry) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("203.0.113.20")}, nil
}

func (r *registry) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	server := r.secure
	if to.Port() == 80 {
		server = r.plain
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", server)
}

// certificate makes an authority, writes it to CAFile and returns a server's certificate of it.
func (r *registry) certificate(t testing.TB) tls.Certificate {
	t.Helper()
	make := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if signer == nil {
			signer = key
		}
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		return der, key
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Authority of a test"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root, rootKey := make(authority, authority, nil)
	if err := os.WriteFile(r.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}), 0o600); err != nil {
		t.Fatal(err)
	}
	leaf, leafKey := make(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "site.example.com"}, DNSNames: []string{"*.example.com"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, rootKey)
	return tls.Certificate{Certificate: [][]byte{leaf, root}, PrivateKey: leafKey}
}

// hosts answers by the name that is asked for.
func (r *registry) hosts(t testing.TB) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	text := func(pattern, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
	}
	text("site.example.com/", "hello")
	module := archive(t, map[string]string{"package/package.json": `{"name":"demo","version":"1.0.0"}`, "package/index.js": "module.exports = 7"})
	sum := sha512.Sum512(module)
	text("npm.example.com/demo", fmt.Sprintf(`{"name":"demo","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"demo","version":"1.0.0","dist":{"tarball":"https://npm.example.com/demo/-/demo-1.0.0.tgz","integrity":"sha512-%s"}}}}`, base64.StdEncoding.EncodeToString(sum[:])))
	text("npm.example.com/demo/-/demo-1.0.0.tgz", string(module))

	text("pip.example.com/simple/demo/", `<!DOCTYPE html><a href="/demo-1.0.0-py3-none-any.whl">demo-1.0.0-py3-none-any.whl</a>`)
	text("pip.example.com/demo-1.0.0-py3-none-any.whl", string(zipped(t, map[string]string{
		"demo/__init__.py":              "seven = 7\n",
		"demo-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0.0\n",
		"demo-1.0.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"demo-1.0.0.dist-info/RECORD":   "demo/__init__.py,,\ndemo-1.0.0.dist-info/METADATA,,\ndemo-1.0.0.dist-info/WHEEL,,\ndemo-1.0.0.dist-info/RECORD,,\n",
	})))

	const goMod = "module example.com/demo\n\ngo 1.19\n"
	text("go.example.com/example.com/demo/@v/v1.0.0.info", `{"Version":"v1.0.0"}`)
	text("go.example.com/example.com/demo/@v/v1.0.0.mod", goMod)
	text("go.example.com/example.com/demo/@v/v1.0.0.zip", string(zipped(t, map[string]string{
		"example.com/demo@v1.0.0/go.mod": goMod, "example.com/demo@v1.0.0/demo.go": "package demo\n\nconst Seven = 7\n",
	})))

	crate := archive(t, map[string]string{"demo-1.0.0/Cargo.toml": "[package]\nname = \"demo\"\nversion = \"1.0.0\"\n", "demo-1.0.0/src/lib.rs": "pub const SEVEN: i32 = 7;\n"})
	digest := sha256.Sum256(crate)
	text("cargo.example.com/dl/demo/1.0.0", string(crate))
	mux.Handle("git.example.com/", gitServer(t, map[string]map[string]string{
		"repo.git": {"README": "hello\n"},
		"index.git": {
			"config.json": `{"dl":"https://cargo.example.com/dl/{crate}/{version}"}`,
			"de/mo/demo":  fmt.Sprintf(`{"name":"demo","vers":"1.0.0","deps":[],"cksum":"%s","features":{},"yanked":false}`, hex.EncodeToString(digest[:])),
		},
	}))
	return mux
}

// gitServer serves repositories of these files as git's own server does.
func gitServer(t testing.TB, repositories map[string]map[string]string) http.Handler {
	t.Helper()
	root := t.TempDir()
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git: %v\n%s", err, out)
		}
	}
	for name, files := range repositories {
		git("init", "-q", "-b", "main", name)
		for file, text := range files {
			file = filepath.Join(root, name, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		git("-C", name, "add", ".")
		git("-C", name, "-c", "user.name=T", "-c", "user.email=t@example.com", "commit", "-q", "-m", "one")
	}
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	return &cgi.Handler{Path: program, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}}
}

// archive is a gzipped tar.
func archive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	packed := gzip.NewWriter(&b)
	w := tar.NewWriter(packed)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := strings.NewReader(text).WriteTo(w); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range files {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := strings.NewReader(text).WriteTo(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
