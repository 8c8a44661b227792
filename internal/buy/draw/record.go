package draw

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill/internal/platform/id"
)

const (
	// Version is the version of the rules that Record follows.
	Version = 1
	// CommitmentType is the typ in the header of a signed root.
	CommitmentType = "draw-root+jwt"
	// maxFile bounds a file, in bytes: 1,000,000 entries take about 77 MB.
	maxFile = 256 << 20
)

// Hash is a SHA-256. Its text is in lower-case hexadecimal.
type Hash [32]byte

// MarshalText returns the hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText parses lower-case hexadecimal digits.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) || bytes.ContainsAny(text, "ABCDEF") {
		return errors.New("a hash is 64 digits of lower-case hexadecimal")
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// Hashes are leaves, in JSON a list of texts as those of Hash.
type Hashes [][32]byte

// UnmarshalJSON reads the list.
func (l *Hashes) UnmarshalJSON(text []byte) error {
	*l = make(Hashes, 0, len(text)/67)
	in := json.NewDecoder(bytes.NewReader(text))
	if _, err := in.Token(); err != nil {
		return err
	}
	for in.More() {
		var h Hash
		if err := in.Decode(&h); err != nil {
			return err
		}
		*l = append(*l, h)
	}
	return nil
}

// Reason is why a rank was not offered units.
type Reason string

// Reasons of skips.
const (
	ReasonLeft       Reason = "LEFT"         // the buyer withdrew the entry
	ReasonBlocked    Reason = "BLOCKED"      // the account is blocked
	ReasonDeleted    Reason = "DELETED"      // the account was deleted
	ReasonNoAccess   Reason = "NO_ACCESS"    // an access rule excludes the buyer
	ReasonLimit      Reason = "LIMIT"        // the buyer has as many units as one may buy
	ReasonCard       Reason = "CARD"         // no card was authorized before the entries were closed
	ReasonTooFewLeft Reason = "TOO_FEW_LEFT" // more units are wanted than are left
)

// reasons lists all Reasons.
var reasons = []Reason{ReasonLeft, ReasonBlocked, ReasonDeleted, ReasonNoAccess, ReasonLimit, ReasonTooFewLeft}

// Offer is what happened when a rank had its turn.
type Offer struct {
	Rank     int    `json:"rank"`              // from 1
	Quantity int    `json:"quantity"`          // units offered; wanted, if it was skipped
	Skipped  Reason `json:"skipped,omitempty"` // "" = the units were offered
}

// Record is the published file of a draw. Times are Unix seconds.
type Record struct {
	Version         int     `json:"version"`
	Sale            string  `json:"sale"` // public ids
	Item            string  `json:"item"`
	ClosedAt        int64   `json:"closedAt"`
	RootPublishedAt int64   `json:"rootPublishedAt"`
	Count           int     `json:"count"` // of entries
	Root            Hash    `json:"root"`
	SignedRoot      string  `json:"signedRoot"`  // Commitment as a JWT, public since RootPublishedAt
	Source          string  `json:"source"`      // SourceQuicknet, SourceOperator or SourceLocal
	Round           uint64  `json:"round"`       // of Source; 0 = it is not a beacon
	Signature       string  `json:"signature"`   // of the round, in hexadecimal
	Value           string  `json:"value"`       // of a source that is not a beacon
	ValueSource     string  `json:"valueSource"` // where operators say that they read Value; "" = they did not enter it
	Leaves          Hashes  `json:"leaves"`      // ascending
	Order           []int   `json:"order"`       // indexes of leaves; that of rank 1 is the first
	Offers          []Offer `json:"offers"`      // in order of rank, without a gap
}

// Commitment is what the shop signs at the closing, before the random value exists.
// IssuedAt is when it was published.
type Commitment struct {
	jwt.RegisteredClaims

	Version  int    `json:"version"`
	Sale     string `json:"sale"`
	Item     string `json:"item"`
	ClosedAt int64  `json:"closedAt"`
	Count    int    `json:"count"`
	Root     Hash   `json:"root"`
	Source   string `json:"source"`
	Round    uint64 `json:"round"`
}

// Commitment returns what the signed root of the record says.
func (r *Record) Commitment() Commitment {
	return Commitment{
		RegisteredClaims: jwt.RegisteredClaims{IssuedAt: jwt.NewNumericDate(time.Unix(r.RootPublishedAt, 0))},
		Version:          r.Version, Sale: r.Sale, Item: r.Item, ClosedAt: r.ClosedAt, Count: r.Count, Root: r.Root,
		Source: r.Source, Round: r.Round,
	}
}

// fields are those of a file, by name.
var fields = []string{
	"closedAt", "count", "item", "leaves", "offers", "order", "root", "rootPublishedAt", "round", "sale", "signature", "signedRoot",
	"source", "value", "valueSource", "version",
}

// Decode reads a file. It has exactly the fields of version 1, so that two programs cannot
// read different things in one file.
func Decode(from io.Reader) (*Record, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("the file has more than %d bytes", maxFile)
	}
	var named map[string]json.RawMessage
	if err := json.Unmarshal(text, &named); err != nil {
		return nil, fmt.Errorf("the file is no record of a draw: %w", err)
	}
	if names := slices.Sorted(maps.Keys(named)); !slices.Equal(names, fields) {
		return nil, finding("the fields of the file are %q", names)
	}
	var r Record
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(&r); err != nil {
		return nil, fmt.Errorf("the file is no record of a draw: %w", err)
	}
	return &r, nil
}

// Finding is what a record shows to be wrong.
type Finding string

func (f Finding) Error() string { return string(f) }

// finding returns a Finding.
func finding(format string, args ...any) error { return Finding(fmt.Sprintf(format, args...)) }

// Check repeats the draw with a chain as the beacon and returns the first Finding: the
// leaves give the root, the root is older than the round, the order follows from the random
// value, and the offers follow the order. It does not check who signed the root.
func (r *Record) Check(chain *Chain) error {
	if r.Version != Version {
		return finding("the file follows version %d of the rules, want %d", r.Version, Version)
	}
	if _, err := id.ParseSale(r.Sale); err != nil {
		return finding("sale: %v", err)
	}
	if _, err := id.ParseItem(r.Item); err != nil {
		return finding("item: %v", err)
	}
	if err := r.checkTree(); err != nil {
		return err
	}
	randomness, err := r.Randomness(chain)
	if err != nil {
		return err
	}
	if want := Order(randomness, r.Leaves); !slices.Equal(r.Order, want) {
		return finding("the order is not the one that follows from the random value")
	}
	return r.checkOffers()
}

// checkTree checks the list of leaves.
func (r *Record) checkTree() error {
	if r.Count != len(r.Leaves) {
		return finding("the file has %d leaves, its count is %d", len(r.Leaves), r.Count)
	}
	for i := 1; i < len(r.Leaves); i++ {
		if bytes.Compare(r.Leaves[i-1][:], r.Leaves[i][:]) >= 0 {
			return finding("leaf %d is not above the leaf before it", i)
		}
	}
	if got := Root(r.Leaves); got != r.Root {
		return finding("the root of the leaves is %x", got)
	}
	return nil
}

// Randomness returns the random value after checking that it is the one for which the root
// had to wait.
func (r *Record) Randomness(chain *Chain) (randomness [32]byte, err error) {
	if r.ClosedAt < 1 || r.RootPublishedAt < r.ClosedAt {
		return randomness, finding("the root was published before the closing")
	}
	if r.Source != chain.name {
		if r.Source == "" || r.Value == "" || r.Round != 0 || r.Signature != "" {
			return randomness, finding("a source that is not %s has a name and a value, and no round", chain.name)
		}
		if (r.Source == SourceOperator) != (r.ValueSource != "") {
			return randomness, finding("a value has a source of its own if operators entered it")
		}
		return ValueRandomness(r.Value), nil
	}
	if r.Value != "" || r.ValueSource != "" {
		return randomness, finding("the value of %s is its signature", chain.name)
	}
	if want := chain.RoundFor(time.Unix(r.RootPublishedAt, 0)); r.Round != want {
		return randomness, finding("round %d: the round of a root of that time is %d", r.Round, want)
	}
	signature, err := hex.DecodeString(r.Signature)
	if err != nil || strings.ToLower(r.Signature) != r.Signature {
		return randomness, finding("the signature is not in lower-case hexadecimal")
	}
	if randomness, err = chain.Verify(r.Round, signature); err != nil {
		return randomness, finding("%v", err)
	}
	return randomness, nil
}

// checkOffers checks that each rank up to the last had its turn.
func (r *Record) checkOffers() error {
	if len(r.Offers) > r.Count {
		return finding("%d offers were made to %d entries", len(r.Offers), r.Count)
	}
	for i, o := range r.Offers {
		if o.Rank != i+1 {
			return finding("rank %d had its turn when it was the turn of rank %d", o.Rank, i+1)
		}
		if o.Quantity < 1 {
			return finding("rank %d: a quantity of %d", o.Rank, o.Quantity)
		}
		if o.Skipped != "" && !slices.Contains(reasons, o.Skipped) {
			return finding("rank %d was skipped for no reason of the rules: %q", o.Rank, o.Skipped)
		}
	}
	return nil
}

// CheckCommitment checks that a signed root is that of the record.
func (r *Record) CheckCommitment(c Commitment) error {
	want := r.Commitment()
	if c.IssuedAt == nil || !c.IssuedAt.Equal(want.IssuedAt.Time) {
		return finding("the root was signed at another time")
	}
	c.RegisteredClaims, want.RegisteredClaims = jwt.RegisteredClaims{}, jwt.RegisteredClaims{}
	if got, want := fmt.Sprint(c), fmt.Sprint(want); got != want {
		return finding("the signed root says %s, the file %s", got, want)
	}
	return nil
}

// Rank returns the rank of a leaf, from 1; false = the leaf is not in the draw. The record
// was checked before.
func (r *Record) Rank(leaf [32]byte) (int, bool) {
	index, ok := slices.BinarySearchFunc(r.Leaves, leaf, func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
	if !ok {
		return 0, false
	}
	return slices.Index(r.Order, index) + 1, true
}
