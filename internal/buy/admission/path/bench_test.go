package path_test

import (
	"testing"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// BenchmarkIssue measures the path tokens that one process issues with GOMAXPROCS × 32
// callers.
func BenchmarkIssue(b *testing.B) {
	conn, prefix := testenv.Redis(b)
	keys := reservation.Keys{Prefix: prefix}
	captchas := newCaptchas(b, conn, keys, nil)
	f := &fixture{t: b, redis: conn.Cmd, keys: keys, captchas: captchas, sale: id.New[id.Sale](), item: id.New[id.Item]()}
	f.shard = id.ShardOf(f.sale)
	f.gate("gate", "open", "stock", 1<<30)
	paths := path.New(path.Config{Client: conn.Script, Keys: keys, Captchas: captchas, Tokens: path.NewTokens(secrets), Ratio: 1.5})
	users := make([]id.User, 4096)
	for i := range users {
		users[i] = id.New[id.User]()
	}
	b.SetParallelism(16)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			in := f.input(users[i%len(users)], captcha.Answer{})
			in.Waived = true
			if _, err := paths.Issue(b.Context(), in); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
