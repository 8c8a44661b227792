package draw_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/uuid"

	"seckill/internal/buy/draw"
	"seckill/internal/platform/id"
)

// leavesOf returns n leaves in the order of the tree.
func leavesOf(n int) [][32]byte {
	leaves := make([][32]byte, n)
	for i := range leaves {
		leaves[i] = sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i))) //nolint:gosec // counts up
	}
	draw.Sort(leaves)
	return leaves
}

// The value was computed with another program:
//
//	printf '\0wtl_00000000000000000000000001\n5f2c17a0b4e94d0c' | sha256sum
func TestALeafCanBeComputedByAnyProgram(t *testing.T) {
	t.Parallel()
	entry := id.Waitlist(uuid.MustParse("00000000-0000-0000-0000-000000000001"))
	if got := fmt.Sprintf("%x", draw.LeafHash(entry, "5f2c17a0b4e94d0c")); got != "a295ed70a04269207c078287dd0f39675fbc719252322a16b0ed644155f30804" {
		t.Errorf("leaf %s of %s", got, entry.Public())
	}
}

// The roots are those of RFC 6962's reference tests for the first leaves of certificate
// transparency, here over their hashes.
func TestTheRootIsThatOfRFC6962(t *testing.T) {
	t.Parallel()
	var leaves [][32]byte
	for _, data := range []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"} {
		raw, err := hex.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, sha256.Sum256(append([]byte{0}, raw...)))
	}
	for n, want := range map[int]string{
		0: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		3: "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		7: "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	} {
		if got := fmt.Sprintf("%x", draw.Root(leaves[:n])); got != want {
			t.Errorf("root of %d leaves %s, want %s", n, got, want)
		}
	}
}

func TestEachLeafIsProvedToBeInTheTree(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 40; n++ {
		leaves := leavesOf(n)
		root, count := draw.Root(leaves), uint64(n)
		for i := range leaves {
			path, err := draw.Inclusion(leaves, i)
			if err != nil {
				t.Fatal(err)
			}
			if err := draw.VerifyInclusion(root, count, uint64(i), leaves[i], path); err != nil {
				t.Errorf("leaf %d of %d: %v", i, n, err)
			}
			if draw.VerifyInclusion(root, count, uint64(i), sha256.Sum256(nil), path) == nil {
				t.Errorf("another leaf is proved by the path of leaf %d of %d", i, n)
			}
		}
		if _, err := draw.Inclusion(leaves, n); err == nil {
			t.Errorf("a leaf beyond %d has a proof", n)
		}
	}
}

// A chi-squared test over the rank of one leaf in 1,000 draws of 50, in 10 classes: 27.9 is
// exceeded by chance once in 1,000, and the random values are fixed.
func TestTheRankOfAnEntryIsUniform(t *testing.T) {
	t.Parallel()
	const draws, entries, classes = 1000, 50, 10
	leaves := leavesOf(entries)
	var seen [classes]int
	for i := range uint64(draws) {
		order := draw.Order(sha256.Sum256(binary.BigEndian.AppendUint64(nil, i)), leaves)
		if all := slices.Sorted(slices.Values(order)); len(all) != entries || all[0] != 0 || all[entries-1] != entries-1 {
			t.Fatalf("the order is no permutation: %v", order)
		}
		seen[slices.Index(order, 7)*classes/entries]++
	}
	squares := 0.0
	for _, n := range seen {
		squares += math.Pow(float64(n)-draws/classes, 2) / (draws / classes)
	}
	t.Logf("ranks of 1,000 draws against uniform: chi-squared %.1f over %v", squares, seen)
	if squares > 27.9 {
		t.Errorf("chi-squared %.1f over %v", squares, seen)
	}
}

// BenchmarkMillion is the computing of a draw with 1,000,000 entries.
func BenchmarkMillion(b *testing.B) {
	leaves := leavesOf(1_000_000)
	b.Run("root", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			draw.Root(leaves)
		}
	})
	b.Run("order", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			draw.Order([32]byte{1}, leaves)
		}
	})
}
