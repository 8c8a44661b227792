package acceptance

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/transparency-dev/merkle/proof"
	"golang.org/x/mod/sumdb/note"
)

// maxEntries bounds a log that is checked: the memory for its leaves is 32 bytes each.
const maxEntries = 100_000_000

// TreeHead is what a checkpoint says.
type TreeHead struct {
	Origin string
	Size   uint64
	Root   []byte
}

// ParseCheckpoint returns what a checkpoint says if a key of the set signed it.
func ParseCheckpoint(text, keySet []byte) (TreeHead, error) {
	origin, _, _ := bytes.Cut(text, []byte("\n"))
	keys, err := noteVerifiers(string(origin), keySet)
	if err != nil {
		return TreeHead{}, err
	}
	signed, err := note.Open(text, keys)
	if err != nil {
		return TreeHead{}, fmt.Errorf("checkpoint: %w", err)
	}
	lines := strings.Split(signed.Text, "\n")
	if len(lines) < 4 {
		return TreeHead{}, errors.New("checkpoint: it has not three lines")
	}
	size, err := strconv.ParseUint(lines[1], 10, 64)
	if err != nil {
		return TreeHead{}, fmt.Errorf("checkpoint: size: %w", err)
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != hashSize {
		return TreeHead{}, errors.New("checkpoint: the root is no hash")
	}
	return TreeHead{string(origin), size, root}, nil
}

// VerifyProof returns the entry of a proof of C2SP tlog-proof if it proves that the entry is
// in a log whose checkpoint a key of the set signed.
func VerifyProof(text, keySet []byte) (LogEntry, TreeHead, error) {
	head, signed, _ := strings.Cut(string(text), "\n\n")
	c, err := ParseCheckpoint([]byte(signed), keySet)
	if err != nil {
		return LogEntry{}, c, err
	}
	lines := strings.Split(head, "\n")
	if len(lines) < 3 || lines[0] != proofHeader {
		return LogEntry{}, c, errors.New("it is no proof of an entry")
	}
	extra, ok := strings.CutPrefix(lines[1], "extra ")
	leaf, err := base64.StdEncoding.DecodeString(extra)
	if err != nil || !ok {
		return LogEntry{}, c, errors.New("proof: it has no entry")
	}
	digits, ok := strings.CutPrefix(lines[2], "index ")
	index, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || !ok {
		return LogEntry{}, c, errors.New("proof: it has no index")
	}
	path := make([][]byte, len(lines)-3)
	for i, line := range lines[3:] {
		if path[i], err = base64.StdEncoding.DecodeString(line); err != nil {
			return LogEntry{}, c, fmt.Errorf("proof: %w", err)
		}
	}
	if err := proof.VerifyInclusion(hasher, index, c.Size, hasher.HashLeaf(leaf), path, c.Root); err != nil {
		return LogEntry{}, c, fmt.Errorf("proof: %w", err)
	}
	e, err := parseEntry(leaf)
	return e, c, err
}

func parseEntry(leaf []byte) (e LogEntry, err error) {
	in := json.NewDecoder(bytes.NewReader(leaf))
	in.DisallowUnknownFields()
	if err := in.Decode(&e); err != nil {
		return e, fmt.Errorf("entry: %w", err)
	}
	if e.Quantity < 1 || e.Task == "" || e.Item == "" || e.Kind != Accepted && e.Kind != Returned && e.Kind != Retaken {
		return e, fmt.Errorf("entry: %s is none", leaf)
	}
	return e, nil
}

// ItemUnits counts the units of an item in a log.
type ItemUnits struct {
	Accepted int `json:"accepted"` // also of payments that came late
	Returned int `json:"returned"`
	Most     int `json:"most"` // that were taken at one time
}

// LogReport is what a log says as a whole.
type LogReport struct {
	Origin  string                `json:"origin"`
	Entries uint64                `json:"entries"`
	Root    []byte                `json:"root"`
	Items   map[string]*ItemUnits `json:"items"` // by public id
}

// Get reads a file of a log by its path below the address of the log.
type Get func(ctx context.Context, path string) ([]byte, error)

// VerifyLog reads a whole log and returns what it says. The error says what is wrong: the
// entries do not give the root that the shop signed, a tile is not that of the entries, an
// earlier checkpoint is not of this log, or the entries contradict each other.
func VerifyLog(ctx context.Context, get Get, keySet []byte, earlier ...[]byte) (*LogReport, error) {
	text, err := get(ctx, "checkpoint")
	if err != nil {
		return nil, err
	}
	head, err := ParseCheckpoint(text, keySet)
	if err != nil {
		return nil, err
	}
	if head.Size > maxEntries {
		return nil, fmt.Errorf("the log has %d entries, at most %d can be checked", head.Size, maxEntries)
	}
	heads := []TreeHead{head}
	for _, text := range earlier {
		h, err := ParseCheckpoint(text, keySet)
		if err != nil {
			return nil, fmt.Errorf("earlier %w", err)
		}
		if h.Origin != head.Origin || h.Size > head.Size {
			return nil, fmt.Errorf("the earlier checkpoint of %s has %d entries, this one of %s has %d", h.Origin, h.Size, head.Origin, head.Size)
		}
		heads = append(heads, h)
	}
	r := &LogReport{Origin: head.Origin, Entries: head.Size, Root: head.Root, Items: map[string]*ItemUnits{}}
	taken := map[string]int{} // units by task
	level := make([][]byte, 0, head.Size)
	tree := ranges.NewEmptyRange(0)
	for first := uint64(0); first < head.Size; first += tileWidth {
		path := "tile/" + entriesTile + "/" + tilePath(first/tileWidth, width(0, first/tileWidth, head.Size))
		leaves, err := entriesAt(ctx, get, path, width(0, first/tileWidth, head.Size))
		if err != nil {
			return nil, err
		}
		for _, leaf := range leaves {
			e, err := parseEntry(leaf)
			if err != nil {
				return nil, err
			}
			r.count(e, taken)
			level = append(level, hasher.HashLeaf(leaf))
			if err := tree.Append(level[len(level)-1], nil); err != nil {
				return nil, err
			}
			for _, h := range heads {
				if h.Size != uint64(len(level)) {
					continue
				}
				if root, err := tree.GetRootHash(nil); err != nil || !bytes.Equal(root, h.Root) {
					return nil, fmt.Errorf("the first %d entries have the root %x, the shop signed %x", h.Size, root, h.Root)
				}
			}
		}
	}
	for task, units := range taken {
		if units < 0 {
			return nil, fmt.Errorf("task %s returned more units than it took", task)
		}
	}
	return r, verifyTiles(ctx, get, level)
}

// entriesAt reads a bundle of n entries.
func entriesAt(ctx context.Context, get Get, path string, n int) ([][]byte, error) {
	text, err := get(ctx, path)
	if err != nil {
		return nil, err
	}
	leaves := make([][]byte, n)
	for i := range leaves {
		if len(text) < 2 || len(text)-2 < int(binary.BigEndian.Uint16(text)) {
			return nil, fmt.Errorf("%s has %d entries, want %d", path, i, n)
		}
		length := int(binary.BigEndian.Uint16(text))
		leaves[i], text = text[2:2+length], text[2+length:]
	}
	if len(text) > 0 {
		return nil, fmt.Errorf("%s has more than %d entries", path, n)
	}
	return leaves, nil
}

// count adds an entry.
func (r *LogReport) count(e LogEntry, taken map[string]int) {
	item := r.Items[e.Item]
	if item == nil {
		item = &ItemUnits{}
		r.Items[e.Item] = item
	}
	if e.Kind == Returned {
		item.Returned += e.Quantity
		taken[e.Task] -= e.Quantity
		return
	}
	item.Accepted += e.Quantity
	taken[e.Task] += e.Quantity
	item.Most = max(item.Most, item.Accepted-item.Returned)
}

// verifyTiles compares the tiles of all levels with the hashes of the entries: others prove
// single entries with them.
func verifyTiles(ctx context.Context, get Get, hashes [][]byte) error {
	for level := 0; len(hashes) > 0; level++ {
		var above [][]byte
		for first := 0; first < len(hashes); first += tileWidth {
			tile := hashes[first:min(first+tileWidth, len(hashes))]
			path := fmt.Sprintf("tile/%d/%s", level, tilePath(uint64(first/tileWidth), len(tile)))
			got, err := get(ctx, path)
			if err != nil {
				return err
			}
			if !bytes.Equal(got, concat(tile)) {
				return fmt.Errorf("%s is not the tile of the entries", path)
			}
			if len(tile) == tileWidth {
				above = append(above, subtree(tile))
			}
		}
		hashes = above
	}
	return nil
}
