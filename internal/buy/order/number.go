package order

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"time"

	"seckill/internal/platform/id"
)

// numberDigits is how many characters follow the date: 35 bits. Two orders of a day
// have the same characters with probability 1 in 34 billion. With 100,000 orders, about
// one batch in 2,000 contains a taken number. The unique index detects it, and the next
// attempt uses a longer number.
const numberDigits = 7

// crockford omits I, L, O and U, which are easily confused with other characters.
var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// Number returns the readable number of an order, such as "20261120-7H3K9QX": the UTC
// date of its creation, and characters derived from its id. Attempt starts at 0 and
// grows each time the number is already taken; each attempt adds two characters.
func Number(id id.Order, at time.Time, attempt int) string {
	sum := sha256.Sum256(fmt.Append(id[:], attempt))
	text := crockford.EncodeToString(sum[:])
	return at.UTC().Format("20060102") + "-" + text[:min(numberDigits+2*attempt, 20)]
}
