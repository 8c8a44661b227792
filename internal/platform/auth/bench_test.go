package auth_test

import (
	"testing"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
)

// BenchmarkVerify measures verification of a cached token and of a new one.
func BenchmarkVerify(b *testing.B) {
	keys, err := auth.NewKeys(current)
	if err != nil {
		b.Fatal(err)
	}
	revocations := auth.NewRevocations(auth.RevocationsConfig{Clock: clock.System{}})
	for name, size := range map[string]int{"seen": 1 << 10, "first": 1} {
		b.Run(name, func(b *testing.B) {
			tokens, err := auth.NewTokens(auth.TokensConfig{
				Keys: keys, CacheSize: size, Clock: clock.System{}, Sessions: revocations, Roles: &world{},
			})
			if err != nil {
				b.Fatal(err)
			}
			var texts [2]string
			for i := range texts {
				if texts[i], _, err = tokens.Mint(auth.MintInput{User: id.New[id.User](), Session: id.New[id.Session](), Role: auth.Customer}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := tokens.Verify(b.Context(), texts[i%len(texts)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
