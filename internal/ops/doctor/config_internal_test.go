package doctor

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"testing"
)

func TestTypedKeysArePredictableAndDrawnOnesAreNot(t *testing.T) {
	t.Parallel()
	for _, typed := range []string{
		"0123456789abcdef0123456789abcdef", "0123456789abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345", "zyxwvutsrqponmlkjihgfedcba987654",
		"qwertyuiopasdfghjklzxcvbnm123456", "k3Jw9vQx2Lm8Zt5Bk3Jw9vQx2Lm8Zt5B", "passwordpasswordpasswordpassword",
		"replace-this-Secret-in-production", "CHANGEME-f81d4fae7dec11d0a76500a0", "seckill-8fj2k1LLz0qPwmR4tVx7YbN3",
	} {
		if !predictable(typed) {
			t.Errorf("%q counts as random", typed)
		}
	}
	for range 10_000 {
		raw := make([]byte, 32)
		_, _ = rand.Read(raw)
		for _, drawn := range []string{string(raw), hex.EncodeToString(raw), base64.StdEncoding.EncodeToString(raw), rand.Text() + rand.Text()} {
			if predictable(drawn) {
				t.Errorf("%q counts as typed", drawn)
			}
		}
	}
}
