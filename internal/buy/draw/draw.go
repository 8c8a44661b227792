// Package draw computes and checks the drawing of a sale: which entries were in it, on what
// public random value it was made, and in what order they are offered units. All of it
// follows from a published file (Record), so that any program can repeat it; docs/fairness.md
// has the rules. The trees are those of RFC 6962.
//
// It does not own the entries and their offers (package waitlist), nor the key that signs
// the root (package acceptance).
package draw

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"seckill/internal/platform/id"
)

var (
	hasher = rfc6962.DefaultHasher
	ranges = compact.RangeFactory{Hash: hasher.HashChildren}
)

// LeafHash returns the leaf of an entry: the RFC 6962 leaf hash of the public id, a line
// feed and the nonce. No id has a line feed, so that no two pairs have the same text.
func LeafHash(entry id.Waitlist, nonce string) (leaf [32]byte) {
	copy(leaf[:], hasher.HashLeaf([]byte(entry.Public()+"\n"+nonce)))
	return leaf
}

// Sort brings leaves into the order that they have in the tree and in the file: ascending.
// It does not show in what order the buyers entered, and a repeated leaf lies beside its
// copy.
func Sort(leaves [][32]byte) {
	slices.SortFunc(leaves, func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
}

// Root returns the RFC 6962 root of the tree of the leaves.
func Root(leaves [][32]byte) (root [32]byte) {
	copy(root[:], grow(leaves, nil))
	return root
}

// grow returns the root of the tree of the leaves and reports each node to visit, if that
// is not nil.
func grow(leaves [][32]byte, visit compact.VisitFn) []byte {
	tree := ranges.NewEmptyRange(0)
	for i := range leaves {
		if err := tree.Append(leaves[i][:], visit); err != nil {
			panic(fmt.Sprintf("draw: append to a range that begins at 0: %v", err))
		}
	}
	if len(leaves) == 0 {
		return hasher.EmptyRoot()
	}
	root, err := tree.GetRootHash(nil)
	if err != nil {
		panic(fmt.Sprintf("draw: root of a range that begins at 0: %v", err))
	}
	return root
}

// Inclusion returns the RFC 6962 proof that the leaf with an index is in the tree of the
// leaves, from the leaf up. It computes the whole tree.
func Inclusion(leaves [][32]byte, index int) ([][]byte, error) {
	nodes, err := proof.Inclusion(uint64(index), uint64(len(leaves))) // a negative index is beyond the size
	if err != nil {
		return nil, err
	}
	at := make(map[compact.NodeID]int, len(nodes.IDs))
	for i, node := range nodes.IDs {
		at[node] = i
	}
	hashes := make([][]byte, len(nodes.IDs))
	grow(leaves, func(node compact.NodeID, hash []byte) {
		if i, ok := at[node]; ok {
			hashes[i] = slices.Clone(hash)
		}
	})
	return nodes.Rehash(hashes, hasher.HashChildren)
}

// VerifyInclusion checks a proof of Inclusion against the root of a tree with count leaves.
func VerifyInclusion(root [32]byte, count, index uint64, leaf [32]byte, path [][]byte) error {
	return proof.VerifyInclusion(hasher, index, count, leaf[:], path, root[:])
}

// Order returns the indexes of the leaves in the order of the draw: by the
// HMAC-SHA-256 of the leaf with the random value as its key, the smallest first. Leaves
// with the same HMAC follow in the order of their bytes.
func Order(randomness [32]byte, leaves [][32]byte) []int {
	type ticket struct {
		first uint64 // of the HMAC, which decides almost always
		rest  [24]byte
		index int
	}
	tickets := make([]ticket, len(leaves))
	mac, sum := hmac.New(sha256.New, randomness[:]), make([]byte, 0, sha256.Size)
	for i := range leaves {
		mac.Reset()
		mac.Write(leaves[i][:])
		sum = mac.Sum(sum[:0])
		tickets[i] = ticket{binary.BigEndian.Uint64(sum), [24]byte(sum[8:]), i}
	}
	slices.SortFunc(tickets, func(a, b ticket) int {
		if c := cmp.Compare(a.first, b.first); c != 0 {
			return c
		}
		return cmp.Or(bytes.Compare(a.rest[:], b.rest[:]), bytes.Compare(leaves[a.index][:], leaves[b.index][:]))
	})
	order := make([]int, len(tickets))
	for rank := range tickets {
		order[rank] = tickets[rank].index
	}
	return order
}
