package reservation_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
	"seckill/internal/testenv"
)

// BenchmarkReserve takes stock with 256 concurrent calls, each of another user with a
// path token: the accepted path through the script, with and without counted tries.
func BenchmarkReserve(b *testing.B) {
	for name, tries := range map[string]reservation.Tries{
		"uncounted": {}, "counted": {Burst: 5, Window: 5 * time.Second}, "contact": {Burst: 5, Window: 5 * time.Second}, "contact and address": {Burst: 5, Window: 5 * time.Second},
	} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b, patient(b, testenv.RedisServer(b).URL()), "t:")
			f.open(b.N + 1)
			attempts := f.attempts(b.N)
			for i := range attempts {
				attempts[i].Tries = tries
				switch name {
				case "contact":
					attempts[i].Permit.Persons = f.persons(fmt.Sprint(i, "@example.com"), "")
				case "contact and address":
					attempts[i].Permit.Persons = f.persons(fmt.Sprint(i, "@example.com"), fmt.Sprint(i, " Main Street"))
				}
			}
			b.ReportAllocs()
			before := f.processorTime()
			b.ResetTimer()
			var wg sync.WaitGroup
			next := make(chan reservation.Attempt, 1024)
			for range 256 {
				wg.Go(func() {
					for a := range next {
						if o, err := f.gate.Reserve(context.Background(), a); err != nil || o.Code != reservation.Accepted {
							b.Errorf("%+v %v", o, err)
						}
					}
				})
			}
			for _, a := range attempts {
				next <- a
			}
			close(next)
			wg.Wait()
			b.StopTimer()
			b.ReportMetric((f.processorTime()-before)*1e6/float64(b.N), "redis-µs/op")
		})
	}
}

// processorTime is the CPU time of the server in seconds: unlike wall time it does not
// depend on other load.
func (f *fixture) processorTime() (seconds float64) {
	f.t.Helper()
	for line := range strings.Lines(f.client.Info(f.t.Context(), "cpu").Val()) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "used_cpu_user" && name != "used_cpu_sys" {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			f.t.Fatal(err)
		}
		seconds += v
	}
	return seconds
}

// attempts returns n attempts of n users, each with a path token.
func (f *fixture) attempts(n int) []reservation.Attempt {
	f.t.Helper()
	out := make([]reservation.Attempt, n)
	for start := 0; start < n; start += 10_000 {
		end := min(n, start+10_000)
		_, err := f.client.Pipelined(f.t.Context(), func(pipe redis.Pipeliner) error {
			for i := start; i < end; i++ {
				out[i] = f.bare(id.New[id.User]())
				pipe.ZAdd(f.t.Context(), f.keys.Permits(id.ShardOf(f.sale), f.item),
					redis.Z{Score: float64(out[i].Permit.Until.UnixMilli()), Member: out[i].User.String()})
			}
			return nil
		})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	return out
}
