package order

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// numberDigits is how many characters follow the date: 35 bits. Two orders of a
// day share them about once in 34 billion pairs: when there are a hundred thousand,
// one batch in two thousand meets a number that is taken. The unique index notices,
// and the next attempt is longer.
const numberDigits = 7

// crockford leaves out I, L, O and U, which people misread.
var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// Number returns the number of an order for people, such as "20261120-7H3K9QX":
// the UTC date at which it was made, and characters that follow from its id.
// Attempt grows from 0 each time the number turned out to be taken; each adds
// two characters.
func Number(id uuid.UUID, at time.Time, attempt int) string {
	sum := sha256.Sum256(fmt.Append(id[:], attempt))
	text := crockford.EncodeToString(sum[:])
	return at.UTC().Format("20060102") + "-" + text[:min(numberDigits+2*attempt, 20)]
}
