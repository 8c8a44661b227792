package reservation

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/batch"
	"seckill/internal/platform/id"
	"seckill/internal/platform/ratelimit"
	"seckill/internal/platform/stream"
	"seckill/internal/platform/tracing"
)

// GateConfig holds the dependencies of a Gate.
type GateConfig struct {
	// Client runs the scripts. It must not retry: after a lost reply, a second run must
	// be the decision of the Gate.
	Client redis.UniversalClient
	// ReserveClient runs Reserve alone, so that other commands do not delay its batches;
	// nil = Client.
	ReserveClient redis.UniversalClient
	// ReadClient runs plain reads and may retry them; nil = Client.
	ReadClient redis.UniversalClient
	Keys       Keys
	Tracer     *tracing.Tracer       // nil = traces nothing
	Timeout    time.Duration         // of one batch of reservations or look-ups; 0 = DefaultTimeout
	Registerer prometheus.Registerer // nil = metrics are not exported
	Log        *slog.Logger          // nil = discard
}

// Gate reads and changes the gates of all items in Redis. It is safe for concurrent
// use. Each method runs one script or one pipeline.
type Gate struct {
	client        redis.UniversalClient
	reserveClient redis.UniversalClient
	readClient    redis.UniversalClient
	keys          Keys
	metrics       *metrics
	tracer        *tracing.Tracer
	log           *slog.Logger
	attempts      [id.Shards]*batch.Batcher[*Attempt, Outcome]
	lookups       *batch.Batcher[lookup, found]
}

// NewGate returns a Gate.
func NewGate(cfg GateConfig) *Gate {
	g := &Gate{
		client: cfg.Client, reserveClient: cfg.ReserveClient, readClient: cfg.ReadClient,
		keys: cfg.Keys, metrics: newMetrics(cfg.Registerer), tracer: cfg.Tracer, log: cfg.Log,
	}
	if g.reserveClient == nil {
		g.reserveClient = g.client
	}
	if g.readClient == nil {
		g.readClient = g.client
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	timeout := cmp.Or(cfg.Timeout, DefaultTimeout)
	for shard := range g.attempts {
		g.attempts[shard] = batch.New(batch.Config[*Attempt, Outcome]{
			Process: g.reserveAll, MaxBatch: maxBatch, MaxInFlight: batchesInFlight, MaxWaiting: maxWaiting, Timeout: timeout,
			Gather: gatherAttempts,
		})
	}
	g.lookups = batch.New(batch.Config[lookup, found]{
		Process: g.lookupAll, MaxBatch: maxLookups, MaxInFlight: lookupsInFlight, MaxWaiting: maxLookupsWaiting,
		Timeout: timeout,
	})
	return g
}

//go:embed lua/*.lua
var sources embed.FS

func source(name string) string {
	text, err := sources.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // embedded above
	}
	return string(text)
}

// GateLua defines the Lua functions that read a gate and decide whether it may be used;
// lua/prelude.lua documents them. Every script that uses a gate includes it.
var GateLua = source("prelude")

// ExpiriesLua defines the Lua functions that count reservations and path tokens which expired;
// lua/expiries.lua documents them.
var ExpiriesLua = fmt.Sprintf("local FREE_EXPIRIES, FIRST_WAIT, LONGEST_WAIT, EXPIRIES_KEPT = %d, %d, %d, %d\n",
	MaxExpired, ExpiredWait.Milliseconds(), LongestWait.Milliseconds(), expiriesKept.Milliseconds()) + source("expiries")

// OtherPathLua defines the Lua function that finds the unused path token of another account of a
// person. lua/other_path.lua documents it.
var OtherPathLua = source("other_path")

// The scripts of the gate. redis.Script is immutable.
var (
	reserveScript = redis.NewScript(GateLua + stream.AppendLua + ratelimit.TriesLua + source("append_orders") +
		source("reserve"))
	releaseScript         = redis.NewScript(GateLua + ExpiriesLua + source("release"))
	reacquireScript       = script("reacquire")
	redeemScript          = appending("redeem")
	waitlistStatusScript  = redis.NewScript(GateLua + ExpiriesLua + OtherPathLua + source("waitlist_status"))
	countFormerScript     = redis.NewScript(GateLua + ExpiriesLua + source("count_former"))
	restoreExpiriesScript = script("restore_expiries")
	stateScript           = script("state")
	setStateScript        = script("set_state")
	suspendScript         = script("suspend")
	adjustScript          = script("adjust")
	beginScript           = script("begin")
	addReservationsScript = script("add_reservations")
	openScript            = script("open")
	unloadScript          = script("unload")
)

func script(name string) *redis.Script { return redis.NewScript(GateLua + source(name)) }

// appending is script for scripts that append an order message.
func appending(name string) *redis.Script {
	return redis.NewScript(GateLua + stream.AppendLua + source("append_orders") + source(name))
}

// LoadScripts loads the scripts into Redis, so that the first buyer does not pay for
// it. In a Cluster, every master loads them.
func LoadScripts(ctx context.Context, client redis.UniversalClient) error {
	for _, s := range []*redis.Script{
		reserveScript, releaseScript, reacquireScript, redeemScript, waitlistStatusScript, countFormerScript,
		restoreExpiriesScript, stateScript, setStateScript, suspendScript,
		adjustScript, beginScript, addReservationsScript, openScript, unloadScript,
	} {
		if err := s.Load(ctx, client).Err(); err != nil {
			return fmt.Errorf("load scripts: %w", err)
		}
	}
	return nil
}
