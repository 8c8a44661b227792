// Package delivery owns what the senders of e-mails, webhooks and notices share: the pause
// between two attempts, and the text of an error that is stored with a delivery.
//
// It does not claim deliveries or send them.
package delivery

import (
	"time"

	"seckill/internal/platform/fault"
)

// Pauses are the pauses between the attempts at a delivery: First, then three times as long
// as the one before, at most Most.
type Pauses struct{ First, Most time.Duration }

// After returns the pause after an attempt, the first of which is 1.
func (p Pauses) After(attempts int) time.Duration {
	wait := p.First
	for range attempts - 1 {
		if wait *= 3; wait >= p.Most {
			return p.Most
		}
	}
	return wait
}

// maxReason bounds the stored text in bytes.
const maxReason = 200

// Reason returns the text of an error in the length that is stored: valid UTF-8 of at most
// 200 bytes.
func Reason(err error) string { return fault.Shorten(err.Error(), maxReason) }
