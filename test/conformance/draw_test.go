package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"seckill/internal/buy/acceptance"
	"seckill/internal/buy/draw"
	"seckill/internal/platform/id"
)

// rounds are true ones of Quicknet.
var rounds = map[uint64]string{
	1000: "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
	1001: "b33bf3667cbd5a82de3a24b4e0e9fe5513cc1a0e840368c6e31f5fcfa79bea03f73896b25883abf2853d10337fb8fa41",
	1002: "ab066f9c12dd6de1336fca0f925192fb0c72a771c3e4c82ede1fd362c1a770f9eb05843c6308ce2530b53a99c0281a6e",
}

// shop signs roots.
type shop struct {
	*acceptance.Signer

	t *testing.T
}

func newShop(t *testing.T, secret string) shop {
	t.Helper()
	signer, err := acceptance.NewSigner("https://shop.example", [][]byte{[]byte(strings.Repeat(secret, 32))})
	if err != nil {
		t.Fatal(err)
	}
	return shop{signer, t}
}

// drawn returns a draw of n entries: at a round, or with a value for round 0.
func (s shop) drawn(n int, round uint64, value string) *draw.Record {
	s.t.Helper()
	r := &draw.Record{Version: draw.Version, Sale: id.New[id.Sale]().Public(), Item: id.New[id.Item]().Public(), Count: n}
	for i := range n {
		r.Leaves = append(r.Leaves, draw.LeafHash(id.New[id.Waitlist](), fmt.Sprintf("nonce %d of a buyer", i)))
	}
	draw.Sort(r.Leaves)
	r.Root = draw.Root(r.Leaves)
	r.RootPublishedAt = draw.RoundTime(1000).Unix() - 31
	r.Source, r.Value, r.ValueSource = draw.SourceOperator, value, "numbers of a lottery"
	if round > 0 {
		r.RootPublishedAt = draw.RoundTime(round).Add(-draw.Lead).Unix() - 1
		r.Source, r.Value, r.ValueSource, r.Round, r.Signature = draw.SourceQuicknet, "", "", round, rounds[round]
	}
	r.ClosedAt = r.RootPublishedAt - 5
	randomness := draw.ValueRandomness(r.Value)
	if round > 0 {
		signature, err := hex.DecodeString(r.Signature)
		if err != nil {
			s.t.Fatal(err)
		}
		randomness = sha256.Sum256(signature)
	}
	r.Order = draw.Order(randomness, r.Leaves)
	for rank := 1; rank <= n/2; rank++ {
		o := draw.Offer{Rank: rank, Quantity: 1 + rank%2}
		if rank%5 == 0 {
			o.Skipped = draw.ReasonLeft
		}
		r.Offers = append(r.Offers, o)
	}
	s.sign(r, draw.CommitmentType)
	return r
}

func (s shop) sign(r *draw.Record, typ string) {
	s.t.Helper()
	var err error
	if r.SignedRoot, err = s.SignAs(typ, r.Commitment()); err != nil {
		s.t.Fatal(err)
	}
}

// here is the verdict of the server's own code on a file.
func (s shop) here(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	r, err := draw.Decode(bytes.NewReader(text))
	if err != nil {
		return err
	}
	if err := r.Check(draw.Quicknet()); err != nil {
		return err
	}
	var signed draw.Commitment
	if err := acceptance.VerifyAs(draw.CommitmentType, r.SignedRoot, s.KeySet(), &signed); err != nil {
		return err
	}
	return r.CheckCommitment(signed)
}

// there returns the verdicts of the example on files: what it finds, "" = genuine.
func (s shop) there(dir string, files []string) map[string]string {
	s.t.Helper()
	if err := packages(); err != nil {
		s.t.Fatalf("the verifier needs Node 20 or newer with npm: %v", err)
	}
	keys := filepath.Join(dir, "jwks.json")
	if err := os.WriteFile(keys, s.KeySet(), 0o600); err != nil {
		s.t.Fatal(err)
	}
	installed, err := filepath.Abs("node_modules")
	if err != nil {
		s.t.Fatal(err)
	}
	program, err := os.ReadFile(filepath.Join(examples, "draw-verifier/verify.mjs"))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "verify.mjs"), program, 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Symlink(installed, filepath.Join(dir, "node_modules")); err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), "node", append([]string{"verify.mjs", "--keys", keys}, files...)...)
	cmd.Dir = dir
	var errors strings.Builder
	cmd.Stderr = &errors
	out, _ := cmd.Output() // ends with 1 for a single finding
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		file, verdict, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if strings.HasPrefix(verdict, "genuine") {
			verdict = ""
		}
		found[file] = verdict
	}
	if len(found) != len(files) {
		s.t.Fatalf("%d verdicts on %d files\n%s", len(found), len(files), errors.String())
	}
	return found
}

// TestTwoVerifiersAgreeOnDraws is short; draw_faults_test.go has 10,000.
func TestTwoVerifiersAgreeOnDraws(t *testing.T) {
	t.Parallel()
	agreeOn(t, 1000)
}

// agreeOn generates draws of which every third has one digit changed.
func agreeOn(t *testing.T, draws int) {
	t.Helper()
	s, dir, random := newShop(t, "k"), t.TempDir(), rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same draws each time
	files, genuine := make([]string, draws), 0
	for i := range files {
		round := uint64(0)
		if i%50 == 0 { // a pairing takes milliseconds
			round = 1000 + uint64(random.IntN(len(rounds))) //nolint:gosec // small
		}
		text, err := s.drawn(random.IntN(24), round, fmt.Sprintf("value %d", i)).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 2 {
			changeDigit(text, random)
		}
		files[i] = fmt.Sprintf("%d.json", i)
		if err := os.WriteFile(filepath.Join(dir, files[i]), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found := s.there(dir, files)
	for i, file := range files {
		err := s.here(filepath.Join(dir, file))
		if (err == nil) != (found[file] == "") {
			t.Errorf("draw %d: here %v, there %q", i, err, found[file])
		}
		if err == nil {
			genuine++
		} else if i%3 != 2 {
			t.Errorf("draw %d: %v", i, err)
		}
	}
	t.Logf("%d draws, %d genuine", draws, genuine)
}

// changeDigit changes one digit of a text.
func changeDigit(text []byte, random *rand.Rand) {
	for {
		at := random.IntN(len(text))
		if c := text[at]; c >= '0' && c <= '9' {
			text[at] = '0' + (c-'0'+1+byte(random.IntN(9)))%10 //nolint:gosec // below 10
			return
		}
	}
}

// TestManipulatedDrawsAreRefused changes a genuine file in all the ways that would make
// another buyer win, or hide that one did.
func TestManipulatedDrawsAreRefused(t *testing.T) {
	t.Parallel()
	s, other := newShop(t, "k"), newShop(t, "o")
	// redraw brings order and root in line with what was changed, as a shop could.
	redraw := func(r *draw.Record) {
		draw.Sort(r.Leaves)
		r.Count, r.Root = len(r.Leaves), draw.Root(r.Leaves)
		if randomness, err := r.Randomness(draw.Quicknet()); err == nil {
			r.Order = draw.Order(randomness, r.Leaves)
		}
	}
	binds := map[string]func(*draw.Record){
		"another entry":               func(r *draw.Record) { r.Leaves[3] = sha256.Sum256(nil); draw.Sort(r.Leaves) },
		"another entry with its root": func(r *draw.Record) { r.Leaves[3] = sha256.Sum256(nil); redraw(r) },
		"one entry less":              func(r *draw.Record) { r.Leaves = r.Leaves[1:]; redraw(r) },
		"one entry more":              func(r *draw.Record) { r.Leaves = append(r.Leaves, sha256.Sum256(nil)); redraw(r) },
		"an entry twice": func(r *draw.Record) {
			r.Leaves = append(r.Leaves, r.Leaves[0])
			redraw(r)
			s.sign(r, draw.CommitmentType)
		},
		"leaves in another order": func(r *draw.Record) {
			slices.Reverse(r.Leaves)
			r.Root = draw.Root(r.Leaves)
			s.sign(r, draw.CommitmentType)
		},
		"another count": func(r *draw.Record) { r.Count++ },
		"another root":  func(r *draw.Record) { r.Root[0] ^= 1 },
		"a later round": func(r *draw.Record) { r.Round, r.Signature = 1001, rounds[1001]; redraw(r) },
		"a later round, signed again": func(r *draw.Record) {
			r.Round, r.Signature = 1001, rounds[1001]
			redraw(r)
			s.sign(r, draw.CommitmentType)
		},
		"a root published later":           func(r *draw.Record) { r.RootPublishedAt += 3; r.Round, r.Signature = 1001, rounds[1001]; redraw(r) },
		"a root published after the round": func(r *draw.Record) { r.RootPublishedAt += 60; s.sign(r, draw.CommitmentType) },
		"a root before the closing":        func(r *draw.Record) { r.ClosedAt = r.RootPublishedAt + 1; s.sign(r, draw.CommitmentType) },
		"another closing":                  func(r *draw.Record) { r.ClosedAt-- },
		"the signature of another round":   func(r *draw.Record) { r.Signature = rounds[1001] },
		"the negated signature":            func(r *draw.Record) { r.Signature = "9" + r.Signature[1:] },
		"the uncompressed signature": func(r *draw.Record) {
			r.Signature = "1" + r.Signature[1:] + "11f92e4521ef54f047b64b85fa98db2d46f0f44add1f60b93f8a0dbddd63b34f238657c2d93aed18b90bddd60a01b6d2"
		},
		"the signature in upper case": func(r *draw.Record) { r.Signature = strings.ToUpper(r.Signature) },
		"no signature":                func(r *draw.Record) { r.Signature = "" },
		"a value of the shop": func(r *draw.Record) {
			r.Source, r.Round, r.Signature, r.Value, r.ValueSource = draw.SourceOperator, 0, "", "6", "dice"
			redraw(r)
		},
		"a value beside the round":   func(r *draw.Record) { r.Value = "6" },
		"a source beside the round":  func(r *draw.Record) { r.ValueSource = "dice" },
		"two ranks exchanged":        func(r *draw.Record) { r.Order[0], r.Order[1] = r.Order[1], r.Order[0] },
		"the order turned round":     func(r *draw.Record) { slices.Reverse(r.Order) },
		"the order of another value": func(r *draw.Record) { r.Order = draw.Order(sha256.Sum256(nil), r.Leaves) },
		"an order of some":           func(r *draw.Record) { r.Order = r.Order[:5] },
		"a rank twice":               func(r *draw.Record) { r.Order[1] = r.Order[0] },
		"a rank passed over":         func(r *draw.Record) { r.Offers = slices.Delete(r.Offers, 1, 2) },
		"the last rank first":        func(r *draw.Record) { r.Offers[0].Rank = r.Count },
		"offers in another order":    func(r *draw.Record) { slices.Reverse(r.Offers) },
		"an offer of nothing":        func(r *draw.Record) { r.Offers[0].Quantity = 0 },
		"a skip for no reason":       func(r *draw.Record) { r.Offers[0].Skipped = "SHOP" },
		"more ranks than entries": func(r *draw.Record) {
			for len(r.Offers) <= r.Count {
				r.Offers = append(r.Offers, draw.Offer{Rank: len(r.Offers) + 1, Quantity: 1})
			}
		},
		"another version":               func(r *draw.Record) { r.Version = 2 },
		"another sale":                  func(r *draw.Record) { r.Sale = id.New[id.Sale]().Public() },
		"another item":                  func(r *draw.Record) { r.Item = id.New[id.Item]().Public() },
		"the signed root of another":    func(r *draw.Record) { r.SignedRoot = s.drawn(12, 1000, "").SignedRoot },
		"a root signed by another":      func(r *draw.Record) { other.sign(r, draw.CommitmentType) },
		"a root signed as a receipt":    func(r *draw.Record) { s.sign(r, "receipt+jwt") },
		"a root that is not signed":     func(r *draw.Record) { r.SignedRoot = "" },
		"a signature cut from the root": func(r *draw.Record) { r.SignedRoot = r.SignedRoot[:strings.LastIndex(r.SignedRoot, ".")+1] },
		"a root with the algorithm none": func(r *draw.Record) {
			r.SignedRoot = "eyJhbGciOiJub25lIiwidHlwIjoiZHJhdy1yb290K2p3dCJ9" + r.SignedRoot[strings.Index(r.SignedRoot, "."):]
		},
	}
	texts := map[string]func(map[string]any){
		"a field more":            func(m map[string]any) { m["randomness"] = "00" },
		"a field less":            func(m map[string]any) { delete(m, "value") },
		"a field in another case": func(m map[string]any) { m["Root"] = m["root"]; delete(m, "root") },
		"a leaf in upper case": func(m map[string]any) {
			l, _ := m["leaves"].([]any)
			text, _ := l[0].(string)
			l[0] = strings.ToUpper(text)
		},
		"an order of texts": func(m map[string]any) { m["order"] = "0" },
	}
	dir := t.TempDir()
	var files []string
	write := func(name string, text []byte) {
		file := strings.ReplaceAll(name, " ", "-") + ".json"
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	encode := func(r *draw.Record) []byte {
		text, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	write("genuine", encode(s.drawn(12, 1000, "")))
	for _, name := range slices.Sorted(maps.Keys(binds)) {
		r := s.drawn(12, 1000, "")
		binds[name](r)
		write(name, encode(r))
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		var m map[string]any
		if err := json.Unmarshal(encode(s.drawn(12, 1000, "")), &m); err != nil {
			t.Fatal(err)
		}
		texts[name](m)
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		write(name, text)
	}
	found := s.there(dir, files)
	for _, file := range files {
		err := s.here(filepath.Join(dir, file))
		if genuine := file == "genuine.json"; (err == nil) != genuine || (found[file] == "") != genuine {
			t.Errorf("%s: here %v, there %q", file, err, found[file])
		}
	}
	t.Logf("%d manipulations are refused by both", len(files)-1)
}
