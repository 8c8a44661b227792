package path_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/admission/path"
	"seckill/internal/buy/reservation"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/person"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
	"seckill/internal/testenv"
)

// BenchmarkIssue issues path tokens, each for a captcha of its own, in script calls of a fixed
// number of buyers, and measures the CPU time of Redis, the time and the number of commands of the
// scripts per path token. The limits of the sale count accounts, contacts, or contacts and addresses
// over all its items.
func BenchmarkIssue(b *testing.B) {
	for _, limit := range []sale.LimitBy{{}, {Contact: true}, {Contact: true, Address: true}} {
		for _, size := range []int{1, 20, 100} {
			b.Run(fmt.Sprintf("by=%s/batch=%d", cmp.Or(limit.String(), "account"), size), func(b *testing.B) { benchmarkIssue(b, limit, size) })
		}
	}
}

func benchmarkIssue(b *testing.B, limit sale.LimitBy, size int) {
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
	f.gate("stock", 1<<30)
	if limit.Address {
		f.gate("stock", 1<<30, "salelimit", 2)
	}
	hasher := person.NewHasher([][]byte{[]byte(strings.Repeat("person!!", 4))})
	paths := path.New(path.Config{Client: conn.Script, Keys: f.keys, Captchas: f.captchas, Tokens: path.NewTokens(secrets), Ratio: 1.5})
	inputs := make([]path.IssueInput, b.N)
	for i := range inputs {
		user := id.New[id.User]()
		inputs[i] = f.input(user, f.challenge(user))
		contact, persons := fmt.Sprint(i, "@example.com"), &inputs[i].Persons
		if limit.Contact {
			persons.Contact = hasher.Contact(f.sale, contact, true)
		} else {
			persons.Former[0] = hasher.Former(f.sale, contact, true)
		}
		if limit.Address {
			persons.Address = hasher.Address(f.sale, person.Place{Country: "DE", PostalCode: "10115", Street: fmt.Sprint(i, " Main Street")})
		}
	}
	b.ReportAllocs()
	before := processorTime(b, f.redis)
	commandsBefore, microsBefore := scripts(b, f.redis)
	b.ResetTimer()
	for batch := range slices.Chunk(inputs, size) {
		if err := paths.IssueBatch(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	commands, micros := scripts(b, f.redis)
	b.ReportMetric((processorTime(b, f.redis)-before)*1e6/float64(b.N), "redis-µs/op")
	b.ReportMetric((micros-microsBefore)/float64(b.N), "script-µs/op")
	b.ReportMetric((commands-commandsBefore)/float64(b.N), "commands/op")
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

// scripts is the number of commands of a server, those in scripts too, and what all scripts took,
// in microseconds.
func scripts(b *testing.B, client redis.UniversalClient) (commands, micros float64) {
	b.Helper()
	for line := range strings.Lines(client.Info(b.Context(), "commandstats").Val()) {
		name, rest, _ := strings.Cut(line, ":")
		var calls, spent float64
		if !strings.HasPrefix(name, "cmdstat_") {
			continue
		}
		if _, err := fmt.Sscanf(rest, "calls=%f,usec=%f", &calls, &spent); err != nil {
			b.Fatal(err)
		}
		commands += calls
		if name == "cmdstat_evalsha" {
			micros = spent
		}
	}
	return commands, micros
}
