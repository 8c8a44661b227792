package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"seckill/internal/buy/order"
	"seckill/internal/platform/id"
)

// maxLine bounds a line of an exported log, in bytes: details and notes of one act.
const maxLine = 1 << 20

// lateAfter is the age of an entry from which it is late: its transaction was held up, for
// example by a standby that was away, or the clock of its process was slow. An entry that
// was inserted with an old id looks the same.
const lateAfter = time.Minute

// Verification is the result of Verify.
type Verification struct {
	SaleID   string   `json:"saleId"`
	OK       bool     `json:"ok"`
	Findings []string `json:"findings"` // one sentence each
	Entries  int      `json:"entries"`
	Seals    int      `json:"seals"`
	Unsealed int      `json:"unsealed"` // entries after the last seal
	Head     string   `json:"head"`     // of all entries
	Sealed   string   `json:"sealed"`   // the last seal's head; "" = none
	Late     []string `json:"late"`     // ids of entries that are much older than the seal before them
	// HeadChecked is false when no noted head was given: a writer of the database
	// could have computed the whole file anew, or cut off its end.
	HeadChecked bool `json:"headChecked"`
}

// verifier reads a file line by line.
type verifier struct {
	Verification
	header Header
	first  []byte // the line of the header
	chain  *chain
	sealed time.Time // when the last seal was written
	byID   bool      // the file is of release 0.1
	last   uuid.UUID // id of the previous entry; of files of release 0.1
	floor  uuid.UUID // where the previous seal ends; of files of release 0.1
	seen   map[uuid.UUID]bool
	ended  bool
	units  map[string]map[string]int // item → kind of move → units
	wanted string                    // head that must occur; "" = it did, or none was noted
}

// Verify checks an exported log without any service: the chain, the seals, the order of
// the entries, and that the moves come to the units of the items. A head that was noted
// earlier must occur in the chain; "" = none was. The error reports a file that is no
// exported log.
func Verify(in io.Reader, head string) (*Verification, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	v := &verifier{Verification: Verification{Findings: []string{}, Late: []string{}, HeadChecked: head != ""},
		units: map[string]map[string]int{}, seen: map[uuid.UUID]bool{}, wanted: head}
	for n := 1; lines.Scan(); n++ {
		if err := v.line(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if v.chain == nil {
		return nil, errors.New("the file is empty")
	}
	if !v.ended {
		v.found("the file ends without its last line")
	}
	if v.wanted != "" {
		v.found("the head %s does not occur in the log", v.wanted)
	}
	v.checkSums()
	v.Head, v.Entries = v.chain.hex(), v.chain.entries
	v.OK = len(v.Findings) == 0
	return &v.Verification, nil
}

func (v *verifier) found(format string, args ...any) {
	v.Findings = append(v.Findings, fmt.Sprintf(format, args...))
}

func (v *verifier) line(text []byte) error {
	var kind struct{ Type string }
	if err := json.Unmarshal(text, &kind); err != nil {
		return err
	}
	if (v.chain == nil) != (kind.Type == typeLog) {
		return errors.New("a log has one header, in its first line")
	}
	if v.ended {
		v.found("there are lines after the last one")
	}
	switch kind.Type {
	case typeLog:
		if err := json.Unmarshal(text, &v.header); err != nil {
			return err
		}
		switch v.byID = v.header.Algorithm == idAlgorithm; v.header.Algorithm {
		case Algorithm, idStartAlgorithm, idAlgorithm:
		default:
			return fmt.Errorf("unknown algorithm %q", v.header.Algorithm)
		}
		var err error
		if v.chain, err = newChain(v.header.Start); err != nil {
			return err
		}
		v.SaleID, v.first = v.header.SaleID, slices.Clone(text)
	case typeAct, typeMove:
		return v.entry(text)
	case typeSeal:
		return v.seal(text)
	case typeEnd:
		var end Trailer
		if err := json.Unmarshal(text, &end); err != nil {
			return err
		}
		v.ended = true
		if end.Entries != v.chain.entries || end.Head != v.chain.hex() {
			v.found("the last line names %d entries and another head; there are %d", end.Entries, v.chain.entries)
		}
		if (end.Header != "" || v.header.Algorithm == Algorithm) && end.Header != v.chain.over(v.first) {
			v.found("the first line was changed")
		}
	default:
		return fmt.Errorf("unknown type %q", kind.Type)
	}
	return nil
}

func (v *verifier) entry(text []byte) error {
	var e Entry
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		return err
	}
	if again, err := v.chain.add(e); err != nil || !bytes.Equal(again, text) {
		v.found("entry %s is not written as this program writes it", e.ID)
	}
	if v.chain.hex() == v.wanted {
		v.wanted = ""
	}
	if v.seen[e.ID] {
		v.found("entry %s occurs twice", e.ID)
	}
	v.seen[e.ID] = true
	if e.ID.Version() != 7 {
		v.found("entry %s has an id that this program does not give", e.ID)
	}
	if v.byID {
		v.order(e)
	} else if e.ID.Version() == 7 && v.sealed.Sub(id.TimeOf(e.ID)) > lateAfter {
		v.Late = append(v.Late, e.ID.String())
	}
	v.last = e.ID
	v.Unsealed++
	if e.Type == typeMove {
		if v.units[e.Item] == nil {
			v.units[e.Item] = map[string]int{}
		}
		v.units[e.Item][e.Kind] += e.Quantity
	}
	return nil
}

// order checks the place of an entry in a file of release 0.1.
func (v *verifier) order(e Entry) {
	if compare(e.ID, v.last) <= 0 {
		v.found("entry %s is not in the order of the ids", e.ID)
	}
	if compare(e.ID, before(v.header.ExportedAt.Add(time.Minute))) > 0 {
		v.found("entry %s has an id that this program does not give", e.ID)
	}
	if compare(e.ID, v.floor) < 0 {
		v.found("entry %s is older than the seal before it", e.ID)
	}
}

func (v *verifier) seal(text []byte) error {
	var s Seal
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if v.Seals++; s.Seq != int64(v.Seals) {
		v.found("seal %d stands where %d is due", s.Seq, v.Seals)
	}
	if v.byID && compare(v.last, s.Until) >= 0 {
		v.found("seal %d ends before entry %s", s.Seq, v.last)
	}
	if s.Entries != v.chain.entries || s.Head != v.chain.hex() {
		v.found("seal %d does not fit: the entries before it were changed, removed, inserted or reordered (%d entries, %d when it was written)", s.Seq, v.chain.entries, s.Entries)
		// The following seals are checked against this one, so that one change is one finding.
		c, err := continueChain(&s)
		if err != nil {
			return err
		}
		v.chain = c
	}
	v.floor, v.Sealed, v.Unsealed, v.sealed = s.Until, s.Head, 0, s.At
	return nil
}

// checkSums compares the moves with the units of the items.
func (v *verifier) checkSums() {
	known := map[string]bool{}
	for _, it := range v.header.Items {
		known[it.Item] = true
		units := func(kind order.Movement) int { return v.units[it.Item][string(kind)] }
		for _, c := range []struct {
			name        string
			stated, sum int
		}{
			{"put on sale", it.Total, units(movementOpen) + units(movementAdjust) - units(order.Withdraw)},
			{"held", it.Held, units(order.Hold) - units(order.Sell) - units(order.Release)},
			{"sold", it.Sold, units(order.Sell) + units(order.Reacquire) - units(order.Restock) - units(order.Withdraw)},
		} {
			if c.stated != c.sum {
				v.found("item %s: %d units are %s, and %d by the moves", it.Item, c.stated, c.name, c.sum)
			}
		}
	}
	for item := range v.units {
		if !known[item] {
			v.found("item %s has moves, and is not in the header", item)
		}
	}
}

func compare(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
