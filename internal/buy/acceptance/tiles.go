package acceptance

import (
	"context"
	"fmt"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"

	"seckill/ent"
	"seckill/ent/acceptanceentry"
	"seckill/internal/platform/id"
)

const (
	// tileHeight and tileWidth are the measures of a tile of C2SP tlog-tiles.
	tileHeight = 8
	tileWidth  = 1 << tileHeight
	hashSize   = 32
)

// tiles reads the tree of a sale from its entries. A tile of level 0 has the hashes of the
// entries; one above has the roots of the full tiles below, which the last entries of
// those tiles have.
type tiles struct {
	entries *ent.AcceptanceEntryClient
	sale    id.Sale
}

// size returns the number of entries.
func (t tiles) size(ctx context.Context) (uint64, error) {
	last, err := t.entries.Query().Where(acceptanceentry.SaleID(t.sale)).
		Order(ent.Desc(acceptanceentry.FieldPosition)).First(ctx)
	if ent.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the last entry: %w", err)
	}
	return uint64(last.Position) + 1, nil
}

// texts returns n entries from a position on.
func (t tiles) texts(ctx context.Context, from uint64, n int) ([]string, error) {
	rows, err := t.entries.Query().Where(acceptanceentry.SaleID(t.sale), acceptanceentry.PositionGTE(int64(from)),
		acceptanceentry.PositionLT(int64(from)+int64(n))).Order(ent.Asc(acceptanceentry.FieldPosition)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read entries: %w", err)
	}
	if len(rows) != n {
		return nil, fmt.Errorf("%d of %d entries from %d", len(rows), n, from)
	}
	texts := make([]string, n)
	for i, r := range rows {
		texts[i] = r.Entry
	}
	return texts, nil
}

// hashes returns n hashes of the tile level from an index on, all of one tile.
func (t tiles) hashes(ctx context.Context, level uint, from uint64, n int) ([][]byte, error) {
	hashes := make([][]byte, n)
	if level == 0 {
		texts, err := t.texts(ctx, from, n)
		for i, text := range texts {
			hashes[i] = hasher.HashLeaf([]byte(text))
		}
		return hashes, err
	}
	last := make([]int64, n) // entries of the tiles below
	for i := range last {
		last[i] = int64((from+uint64(i)+1)<<(tileHeight*level)) - 1
	}
	rows, err := t.entries.Query().Where(acceptanceentry.SaleID(t.sale), acceptanceentry.PositionIn(last...),
		acceptanceentry.NodesNotNil()).
		Order(ent.Asc(acceptanceentry.FieldPosition)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	if len(rows) != n {
		return nil, fmt.Errorf("%d of %d nodes of level %d from %d", len(rows), n, level, from)
	}
	for i, r := range rows {
		if r.Nodes == nil || len(*r.Nodes) < int(level)*hashSize {
			return nil, fmt.Errorf("entry %d has no node of level %d", r.Position, level)
		}
		hashes[i] = (*r.Nodes)[(level-1)*hashSize : level*hashSize]
	}
	return hashes, nil
}

// tree returns the compact range of the first size entries.
func (t tiles) tree(ctx context.Context, size uint64) (*compact.Range, error) {
	nodes := compact.RangeNodes(0, size, nil)
	hashes, err := t.nodes(ctx, nodes, size)
	if err != nil {
		return nil, err
	}
	return ranges.NewRange(0, size, hashes)
}

// root returns the root of the first size entries.
func (t tiles) root(ctx context.Context, size uint64) ([]byte, error) {
	if size == 0 {
		return hasher.EmptyRoot(), nil
	}
	tree, err := t.tree(ctx, size)
	if err != nil {
		return nil, err
	}
	return tree.GetRootHash(nil)
}

// inclusion returns the proof that an entry is among the first size ones, from the leaf up.
func (t tiles) inclusion(ctx context.Context, position, size uint64) ([][]byte, error) {
	nodes, err := proof.Inclusion(position, size)
	if err != nil {
		return nil, err
	}
	hashes, err := t.nodes(ctx, nodes.IDs, size)
	if err != nil {
		return nil, err
	}
	return nodes.Rehash(hashes, hasher.HashChildren)
}

// nodes returns the hashes of nodes, each of a full subtree of the first size entries.
func (t tiles) nodes(ctx context.Context, wanted []compact.NodeID, size uint64) ([][]byte, error) {
	type place struct {
		level uint
		tile  uint64
	}
	read := map[place][][]byte{}
	hashes := make([][]byte, len(wanted))
	for i, node := range wanted {
		level, height := node.Level/tileHeight, node.Level%tileHeight
		first := node.Index << height
		at := place{level, first / tileWidth}
		tile, ok := read[at]
		if !ok {
			var err error
			if tile, err = t.hashes(ctx, level, at.tile*tileWidth, width(level, at.tile, size)); err != nil {
				return nil, err
			}
			read[at] = tile
		}
		from := first % tileWidth
		hashes[i] = subtree(tile[from : from+1<<height])
	}
	return hashes, nil
}

// width returns how many hashes a tile has in a tree of a size; 0 = it does not exist.
func width(level uint, tile, size uint64) int {
	if level*tileHeight >= 64 {
		return 0
	}
	of := size >> (level * tileHeight)
	if tile > of/tileWidth {
		return 0
	}
	return int(min(of-tile*tileWidth, tileWidth))
}

// subtree returns the root of 2^h hashes.
func subtree(hashes [][]byte) []byte {
	if len(hashes) == 1 {
		return hashes[0]
	}
	half := len(hashes) / 2
	return hasher.HashChildren(subtree(hashes[:half]), subtree(hashes[half:]))
}
