package reservation

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"seckill/internal/identity/person"
	"seckill/internal/platform/collect"
)

// Share is what an access rule keeps of an item for its buyers: until a time, others cannot take
// the units that these have not taken.
type Share struct {
	Key   person.Key // of the buyers
	Until time.Time
	Units int
	Taken int // units that reservations of its buyers have
}

// Left returns the units that the share keeps from others at a time.
func (s Share) Left(now time.Time) int {
	if !now.Before(s.Until) {
		return 0
	}
	return max(0, s.Units-s.Taken)
}

// AnyShare stands for the share of an unknown buyer: nothing is kept from that buyer.
const AnyShare person.Key = "*"

// free returns the units that no share keeps from a buyer, and those that one keeps for the buyer. It
// is what spare_units of lua/prelude.lua returns.
func free(stock int, shares []Share, share person.Key, now time.Time) (spare, own int) {
	for _, s := range shares {
		switch left := s.Left(now); {
		case share == AnyShare:
			own += left
		case s.Key == share:
			own = left
		default:
			stock -= left
		}
	}
	return stock, own
}

// bounded takes units that are not in the stock from the last shares: units of a share may have left
// the sale since it was approved.
func bounded(shares []Share, stock int) []Share {
	out := make([]Share, len(shares))
	for i, s := range shares {
		left := max(0, min(s.Units-s.Taken, stock))
		stock -= left
		s.Units = min(s.Units, s.Taken+left)
		out[i] = s
	}
	return out
}

// sharesText returns shares in the form of the field "kept" of an item.
func sharesText(shares []Share) string {
	texts := collect.Map(shares, func(s Share) string {
		return fmt.Sprintf("%s:%d:%d:%d", s.Key, s.Until.UnixMilli(), s.Units, s.Taken)
	})
	return strings.Join(texts, ",")
}

// ParseShares reads the field "kept" of an item; nil for "".
func ParseShares(text string) ([]Share, error) {
	if text == "" {
		return nil, nil
	}
	var shares []Share
	for one := range strings.SplitSeq(text, ",") {
		parts := strings.Split(one, ":")
		if len(parts) != 4 {
			return nil, fmt.Errorf("share has %d parts", len(parts))
		}
		var n [3]int64
		for i := range n {
			var err error
			if n[i], err = strconv.ParseInt(parts[i+1], 10, 64); err != nil {
				return nil, fmt.Errorf("share: %w", err)
			}
		}
		shares = append(shares, Share{Key: person.Key(parts[0]), Until: time.UnixMilli(n[0]).UTC(),
			Units: int(n[1]), Taken: int(n[2])})
	}
	return shares, nil
}
