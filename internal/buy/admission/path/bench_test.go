package path_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/reservation"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// BenchmarkIssue issues path tokens to 256 concurrent buyers, each for a captcha of its own,
// and measures the CPU time of Redis.
func BenchmarkIssue(b *testing.B) {
	conn, err := redisconn.Open(b.Context(), testenv.RedisServer(b).URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	f := &fixture{t: b, redis: conn.Cmd, conn: conn, keys: reservation.Keys{Prefix: "t:"}, sale: id.New[id.Sale](), item: id.New[id.Item]()}
	f.captchas, err = captcha.New(captcha.Config{
		Client: conn.Script, Keys: f.keys, Clock: clock.System{}, Secret: []byte(strings.Repeat("captcha!", 4)), PowMax: 1, Wait: testenv.Wait,
	})
	if err != nil {
		b.Fatal(err)
	}
	f.shard = id.ShardOf(f.sale)
	f.gate("gate", "open", "stock", 1<<30)
	paths := path.New(path.Config{Client: conn.Script, Keys: f.keys, Captchas: f.captchas, Tokens: path.NewTokens(secrets), Ratio: 1.5})
	inputs := make([]path.IssueInput, b.N)
	for i := range inputs {
		user := id.New[id.User]()
		inputs[i] = f.input(user, f.challenge(user))
	}
	b.ReportAllocs()
	before := processorTime(b, f.redis)
	b.ResetTimer()
	var wg sync.WaitGroup
	next := make(chan path.IssueInput, 1024)
	for range 256 {
		wg.Go(func() {
			for in := range next {
				if _, err := paths.Issue(context.Background(), in); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for _, in := range inputs {
		next <- in
	}
	close(next)
	wg.Wait()
	b.StopTimer()
	b.ReportMetric((processorTime(b, f.redis)-before)*1e6/float64(b.N), "redis-µs/op")
	b.ReportMetric(scriptTime(b, f.redis)/float64(b.N), "script-µs/op")
}

// processorTime is the CPU time of a server in seconds: unlike wall time it does not depend on
// other load.
func processorTime(b *testing.B, client redis.UniversalClient) (seconds float64) {
	b.Helper()
	for line := range strings.Lines(client.Info(b.Context(), "cpu").Val()) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				b.Fatal(err)
			}
			seconds += v
		}
	}
	return seconds
}

// scriptTime is what all scripts of a server took, in microseconds.
func scriptTime(b *testing.B, client redis.UniversalClient) float64 {
	b.Helper()
	_, rest, _ := strings.Cut(client.Info(b.Context(), "commandstats").Val(), "cmdstat_evalsha:")
	_, text, _ := strings.Cut(rest, "usec=")
	text, _, _ = strings.Cut(text, ",")
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		b.Fatal(err)
	}
	return v
}
