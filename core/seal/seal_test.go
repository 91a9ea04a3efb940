package seal_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"agent-sandboxing/core/seal"
)

func parse(t testing.TB, list string) *seal.Keyring {
	t.Helper()
	ring, err := seal.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func TestOpen_NeedsTheSamePlaceAndAKnownKey(t *testing.T) {
	t.Parallel()
	first, second := seal.NewKey("a"), seal.NewKey("b")
	ring := parse(t, first)
	place := seal.Place("user_tokens", "access", "0193-row")
	sealed := ring.Seal([]byte("ghu_secret"), place)
	if bytes.Contains(sealed, []byte("secret")) {
		t.Fatal("the sealed value holds the plain one")
	}
	if again := ring.Seal([]byte("ghu_secret"), place); bytes.Equal(sealed, again) {
		t.Error("sealing twice gave the same bytes: the nonce repeats")
	}
	for name, c := range map[string]struct {
		keys, place string
		sealed      []byte
		want        string // "" for unreadable
	}{
		"as sealed":              {first, place, sealed, "ghu_secret"},
		"after a rotation":       {second + "," + first, place, sealed, "ghu_secret"},
		"without the key":        {second, place, sealed, ""},
		"same id, other key":     {seal.NewKey("a"), place, sealed, ""},
		"of another row":         {first, seal.Place("user_tokens", "access", "0193-other"), sealed, ""},
		"of another column":      {first, seal.Place("user_tokens", "refresh", "0193-row"), sealed, ""},
		"cut":                    {first, place, sealed[:len(sealed)-1], ""},
		"empty":                  {first, place, nil, ""},
		"another format":         {first, place, append([]byte{9}, sealed[1:]...), ""},
		"a key id past its end":  {first, place, []byte{1, 200, 'a'}, ""},
		"with nothing behind id": {first, place, []byte{1, 1, 'a'}, ""},
	} {
		got, err := parse(t, c.keys).Open(c.sealed, c.place)
		if c.want == "" && !errors.Is(err, seal.ErrUnreadable) || c.want != "" && string(got) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if got, err := ring.Open(changed, place); err == nil {
			t.Errorf("with byte %d changed it opens as %q", i, got)
		}
	}
	rotated := parse(t, second+","+first)
	if _, err := parse(t, second).Open(rotated.Seal([]byte("x"), place), place); err != nil {
		t.Errorf("the first key of the list did not encrypt: %v", err)
	}
}

func TestParse_NamesWhatIsWrongWithoutTheKey(t *testing.T) {
	t.Parallel()
	good := seal.NewKey("k1")
	_, secret, _ := strings.Cut(good, ":")
	short := base64.StdEncoding.EncodeToString([]byte("only sixteen byt"))
	for list, want := range map[string]string{
		"":                                     "encryption key 1",
		secret:                                 "encryption key 1",
		good + ",":                             "encryption key 2",
		good + "," + good:                      `"k1" is there twice`,
		"k2:" + short:                          `"k2" is not the base64 form of 32 bytes`,
		"k3:" + secret[:20]:                    `"k3" is not`,
		"k 4:" + secret:                        "encryption key 1",
		strings.Repeat("x", 33) + ":" + secret: "encryption key 1",
	} {
		ring, err := seal.Parse(list)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse: %v, %v, want an error with %q", ring, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), secret[:10]) || strings.Contains(err.Error(), short)) {
			t.Errorf("the error holds the key: %v", err)
		}
	}
	ring := parse(t, " "+good+" , "+seal.NewKey("k2"))
	if text := fmt.Sprintf("%v %+v %#v %s", ring, ring, ring, ring); strings.Contains(text, secret[:10]) || strings.Contains(text, "keys") {
		t.Errorf("a printed keyring says %s", text)
	}
}

func FuzzOpen(f *testing.F) {
	ring := parse(f, seal.NewKey("a"))
	f.Add([]byte{}, "p")
	f.Add([]byte{1, 1, 'a', 0, 0}, "p")
	f.Add(ring.Seal([]byte("plain"), "p"), "q")
	f.Fuzz(func(t *testing.T, sealed []byte, place string) {
		if plain, err := ring.Open(sealed, place); err == nil {
			t.Errorf("%x opened as %q", sealed, plain)
		}
	})
}
