package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"seckill/ent"
)

// The log of a sale is a chain of hashes over its entries: the acts of operators and of the
// clock (sale_logs) and the moves of stock (stock_movements), in the order in which they
// were sealed:
//
//	head(0) = SHA-256 of the JSON of Start
//	head(n) = SHA-256 of head(n-1) and the JSON of entry n
//
// A Sealer writes heads into the log itself, as acts with the name ActSeal. It runs behind
// the sale, so the chain costs the path of an order nothing. It seals what is committed and
// visible, and records the positions (log_positions): neither the clock nor the id of an
// entry decides which seal covers it. Release 0.1 sealed in the order of the ids, which
// are UUIDv7. Chains whose first seal a former release wrote begin with the SHA-256 of the
// sale's public id. The rest of the header, which differs between exports, is in the last line.

// ActSeal is the act of a sale's log that holds a seal. It is no act of a person or of the
// clock, and is not shown among them.
const ActSeal = "SEAL"

// Algorithm names the chain in exported files.
const Algorithm = "seckill-log-3: SHA-256 over the previous head and each entry's JSON, in the order of the seals, from the JSON of algorithm, saleId and createdAt"

// idStartAlgorithm is that of chains that begin with the id of the sale alone.
const idStartAlgorithm = "seckill-log-2: SHA-256 over the previous head and each entry's JSON, in the order of the seals"

// format is the number of Algorithm, which the first seal of a chain has.
const format = 3

// idAlgorithm is that of files of release 0.1: all entries are in the order of their ids.
const idAlgorithm = "seckill-log-1: SHA-256 over the previous head and each entry's JSON"

// Entry is one line of the log. The fields depend on Type, in this order and without those
// that are empty.
type Entry struct {
	Type     string    `json:"type"` // act or move
	ID       uuid.UUID `json:"id"`
	At       time.Time `json:"at"`
	Act      string    `json:"act,omitempty"`
	Actor    string    `json:"actor,omitempty"` // public id; "" = the clock
	From     string    `json:"from,omitempty"`
	To       string    `json:"to,omitempty"`
	Revision int64     `json:"revision,omitempty"` // of the sale, after the act
	Note     string    `json:"note,omitempty"`
	Details  string    `json:"details,omitempty"` // JSON
	Item     string    `json:"item,omitempty"`    // public id
	Kind     string    `json:"kind,omitempty"`    // of a move
	Cause    string    `json:"cause,omitempty"`   // order_id of the move
	Quantity int       `json:"quantity,omitempty"`
}

// Seal is a head that was written into the log.
type Seal struct {
	Type    string    `json:"type"`              // seal
	Seq     int64     `json:"seq"`               // from 1
	Through int64     `json:"through,omitempty"` // it covers the entries up to this position; 0 = by Until
	Until   uuid.UUID `json:"until"`             // of release 0.1: it covers the entries with smaller ids
	Format  int       `json:"format,omitempty"`  // of the chain, in its first seal; 0 = it begins with the id of the sale
	Entries int       `json:"entries"`           // since the start of the chain
	Head    string    `json:"head"`              // hexadecimal
	At      time.Time `json:"at"`
}

// positioned reports whether the seal covers entries by their positions.
func (s *Seal) positioned() bool { return s.Through > 0 }

// Types of the lines of an exported file.
const (
	typeAct  = "act"
	typeMove = "move"
	typeSeal = "seal"
)

// chain computes heads.
type chain struct {
	head    [sha256.Size]byte
	entries int
}

// Start is what a chain begins with.
type Start struct {
	Algorithm string    `json:"algorithm"`
	SaleID    string    `json:"saleId"`
	CreatedAt time.Time `json:"createdAt,omitzero"` // of the sale
}

// newChain returns the chain of a sale without entries.
func newChain(s Start) (*chain, error) {
	if s.Algorithm != Algorithm {
		return &chain{head: sha256.Sum256([]byte(s.SaleID))}, nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return &chain{head: sha256.Sum256(text)}, nil
}

func startOf(row *ent.Sale, seals []*Seal) Start {
	s := Start{Algorithm: Algorithm, SaleID: row.ID.Public(), CreatedAt: row.CreatedAt.UTC()}
	if len(seals) > 0 && seals[0].Format == 0 {
		s.Algorithm = idStartAlgorithm
	}
	return s
}

func continueChain(s *Seal) (*chain, error) {
	raw, err := hex.DecodeString(s.Head)
	if err != nil || len(raw) != sha256.Size {
		return nil, fmt.Errorf("seal %d has no valid head", s.Seq)
	}
	return &chain{head: [sha256.Size]byte(raw), entries: s.Entries}, nil
}

// add appends an entry and returns its JSON.
func (c *chain) add(e Entry) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	c.head = sha256.Sum256(append(c.head[:], text...))
	c.entries++
	return text, nil
}

// over returns the SHA-256 of the head and the text of a header.
func (c *chain) over(header []byte) string {
	sum := sha256.Sum256(append(slices.Clone(c.head[:]), header...))
	return hex.EncodeToString(sum[:])
}

func (c *chain) hex() string { return hex.EncodeToString(c.head[:]) }

func entryOfAct(r *ent.SaleLog) Entry {
	e := Entry{
		Type: typeAct, ID: r.ID, At: r.CreatedAt.UTC(), Act: r.Act, From: r.FromStatus, To: r.ToStatus,
		Revision: r.Revision, Note: r.Note, Details: r.Details,
	}
	if r.ActorID != nil {
		e.Actor = r.ActorID.Public()
	}
	return e
}

func entryOfMove(r *ent.StockMovement) Entry {
	return Entry{
		Type: typeMove, ID: r.ID, At: r.CreatedAt.UTC(), Item: r.ItemID.Public(), Kind: string(r.Kind),
		Cause: r.OrderID.String(), Quantity: r.Quantity,
	}
}

func byID(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int { return compare(a.ID, b.ID) })
}

// byPosition sorts entries as the chain has them: the sealed ones, and the others by id.
func byPosition(entries []Entry, positions map[uuid.UUID]int64) {
	place := func(e Entry) int64 {
		if n, sealed := positions[e.ID]; sealed {
			return n
		}
		return math.MaxInt64
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Or(cmp.Compare(place(a), place(b)), compare(a.ID, b.ID)) })
}

// endsBefore reports whether a seal ends before an entry at a position; 0 = none. Positions
// of entries that release 0.1 sealed are their numbers.
func (s *Seal) endsBefore(e Entry, position int64) bool {
	switch {
	case s.positioned():
		return position == 0 || position > s.Through
	case position > 0:
		return position > int64(s.Entries)
	}
	return compare(e.ID, s.Until) >= 0
}

// before returns the smallest UUIDv7 of a time: ids that were made earlier are smaller.
func before(t time.Time) (u uuid.UUID) {
	ms := uint64(t.UnixMilli())
	for i := range 6 {
		u[i] = byte(ms >> (8 * (5 - i)))
	}
	return u
}
