package reservation

import (
	"context"
	"embed"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seckill/internal/batch"
	"seckill/internal/id"
)

// GateConfig is what a Gate needs.
type GateConfig struct {
	// Client runs the scripts. It must not retry: a lost reply must not run a script
	// a second time without the Gate knowing.
	Client redis.UniversalClient
	// ReserveClient runs Reserve alone, so that no other command delays its batches; nil = Client.
	ReserveClient redis.UniversalClient
	// ReadClient runs plain reads and may retry them; nil = Client.
	ReadClient redis.UniversalClient
	Keys       Keys
	Registerer prometheus.Registerer // gets the metrics; nil = they are shown nowhere
	Log        *slog.Logger          // nil = discard
}

// Gate is the gates of all items in Redis. It is safe for concurrent use. Every
// method runs one script or one pipeline.
type Gate struct {
	client        redis.UniversalClient
	reserveClient redis.UniversalClient
	readClient    redis.UniversalClient
	keys          Keys
	metrics       *metrics
	log           *slog.Logger
	attempts      [id.Shards]*batch.Batcher[*Attempt, Outcome]
	lookups       *batch.Batcher[lookup, found]
}

// NewGate returns a Gate.
func NewGate(cfg GateConfig) *Gate {
	g := &Gate{
		client: cfg.Client, reserveClient: cfg.ReserveClient, readClient: cfg.ReadClient,
		keys: cfg.Keys, metrics: newMetrics(cfg.Registerer), log: cfg.Log,
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
	for shard := range g.attempts {
		g.attempts[shard] = batch.New(batch.Config[*Attempt, Outcome]{
			Process: g.reserveAll, MaxBatch: maxBatch, MaxInFlight: batchesInFlight, MaxWaiting: maxWaiting, Timeout: batchTimeout,
		})
	}
	g.lookups = batch.New(batch.Config[lookup, found]{
		Process: g.lookupAll, MaxBatch: maxLookups, MaxInFlight: lookupsInFlight, MaxWaiting: maxLookupsWaiting, Timeout: lookupTimeout,
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

// GateLua defines the Lua functions with which every script reads a gate and decides whether
// it may be used. See its header.
var GateLua = source("prelude")

// The scripts of the gate. redis.Script is immutable.
var (
	reserveScript         = script("reserve")
	releaseScript         = script("release")
	reacquireScript       = script("reacquire")
	redeemScript          = script("redeem")
	waitlistStatusScript  = script("waitlist_status")
	stateScript           = script("state")
	setStateScript        = script("set_state")
	adjustScript          = script("adjust")
	beginScript           = script("begin")
	addReservationsScript = script("add_reservations")
	openScript            = script("open")
	unloadScript          = script("unload")
)

func script(name string) *redis.Script { return redis.NewScript(GateLua + source(name)) }

// LoadScripts makes the scripts known to Redis, so that the first buyer does not wait
// for it. A cluster gets them on every master.
func LoadScripts(ctx context.Context, client redis.UniversalClient) error {
	for _, s := range []*redis.Script{
		reserveScript, releaseScript, reacquireScript, redeemScript, waitlistStatusScript, stateScript, setStateScript,
		adjustScript, beginScript, addReservationsScript, openScript, unloadScript,
	} {
		if err := s.Load(ctx, client).Err(); err != nil {
			return fmt.Errorf("load scripts: %w", err)
		}
	}
	return nil
}
