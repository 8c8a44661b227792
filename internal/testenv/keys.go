package testenv

import (
	"strings"
	"testing"

	"seckill/internal/platform/auth"
)

// Keys returns signing keys.
func Keys(t testing.TB) auth.Keys {
	t.Helper()
	keys, err := auth.NewKeys(auth.Key{ID: "1", Secret: []byte(strings.Repeat("k", 32))})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
