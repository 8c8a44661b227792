package account

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/priority"
	"seckill/internal/platform/redisconn"
)

const (
	localTTL = 4 * time.Second // in the process
	// of operators and administrators in Redis: a role removed by SQL stops working within localTTL + staffTTL
	staffTTL    = 4 * time.Second
	customerTTL = 10 * time.Minute
	localSize   = 1 << 15 // users, about 300 bytes each

	maxFetch        = 256 // users of one round trip and one query, about 5 ms
	fetchesInFlight = 2
	maxFetchWaiting = 1 << 14
	fetchTimeout    = 5 * time.Second
)

//go:embed lua/cache_user.lua
var cacheSource string

var cacheScript = redis.NewScript(cacheSource)

// DirectoryConfig configures a Directory.
type DirectoryConfig struct {
	Store  *Store
	Client redis.UniversalClient
	Prefix string // of every key, for example "sk:"
	Keys   auth.Keys
	Clock  clock.Clock
	Log    *slog.Logger
	// StaffTOTP grants operators and administrators without one-time codes the rights of a
	// customer only.
	StaffTOTP bool
}

// Directory reads users from process memory, then Redis, then Postgres. A change made by
// the application is visible in all processes within a second, a change made by SQL
// within eight seconds for staff. It is safe for concurrent use.
type Directory struct {
	cfg    DirectoryConfig
	sealer auth.Sealer // copies in Redis have names and addresses
	local  *lru.Cache[id.User, localUser]
	fetch  *batch.Batcher[id.User, *User]
}

// localUser is a cached user; user is nil if there is none.
type localUser struct {
	user  *User
	until time.Time
}

// NewDirectory returns a Directory. Register its Forget with Revocations.OnUserChanged.
func NewDirectory(cfg DirectoryConfig) *Directory {
	local, err := lru.New[id.User, localUser](localSize)
	if err != nil {
		panic(err) // only for a size below 1
	}
	d := &Directory{cfg: cfg, sealer: auth.NewSealer(cfg.Keys, "cached users"), local: local}
	d.fetch = batch.New(batch.Config[id.User, *User]{
		Process: d.fetchAll, MaxBatch: maxFetch, MaxInFlight: fetchesInFlight, MaxWaiting: maxFetchWaiting,
		Timeout: fetchTimeout,
	})
	return d
}

// User returns a user; nil if there is none. Users who are asked for while others are read are
// read together.
func (d *Directory) User(ctx context.Context, id id.User) (*User, error) {
	if known, ok := d.local.Get(id); ok && d.cfg.Clock.Now().Before(known.until) {
		return known.user, nil
	}
	found, err := d.fetch.Do(ctx, id)
	if errors.Is(err, batch.ErrFull) {
		err = &fault.Error{Code: fault.Overloaded, Message: "too many users at once", RetryAfter: time.Second, Err: err}
	}
	return found, err
}

// Role returns the role that is granted to a user at present; see auth.TokensConfig.
func (d *Directory) Role(ctx context.Context, id id.User) (auth.Role, error) {
	u, err := d.User(ctx, id)
	if err != nil {
		return "", err
	}
	if u == nil {
		return "", fault.New(fault.Unauthenticated, "The account no longer exists. Sign in again.")
	}
	return d.granted(u), nil
}

// granted returns the role of a user, or Customer while one-time codes are required and
// the user has none.
func (d *Directory) granted(u *User) auth.Role {
	if d.cfg.StaffTOTP && !u.TOTP && u.Role != auth.Customer {
		return auth.Customer
	}
	return u.Role
}

// Forget removes a user from the process cache.
func (d *Directory) Forget(id id.User) { d.local.Remove(id) }

// ForgetAll removes all users from Redis, after Postgres has lost commits that their copies
// have: a copy with a later version than the record would stay for customerTTL. Processes
// forget theirs within localTTL.
func (d *Directory) ForgetAll(ctx context.Context, conn *redisconn.Conn) error {
	err := conn.EachKey(ctx, redisconn.Literal(d.cfg.Prefix)+"user:*", func(keys []string) error {
		pipe := d.cfg.Client.Pipeline()
		for _, key := range keys {
			pipe.Unlink(ctx, key)
		}
		_, err := pipe.Exec(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("forget the users in redis: %w", err)
	}
	return nil
}

// fetchAll returns users from Redis or else from Postgres.
func (d *Directory) fetchAll(ctx context.Context, ids []id.User) []batch.Result[*User] {
	ctx = priority.Urgent(ctx) // all requests share it
	found, err := d.fromRedis(ctx, ids)
	if err != nil {
		d.cfg.Log.WarnContext(ctx, "user cache cannot be read", slog.Any("error", err)) // Postgres is read instead
	}
	var unknown []id.User
	for _, id := range ids {
		if found[id] == nil {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) > 0 {
		var read []*User
		read, err = d.cfg.Store.users(ctx, unknown)
		for _, u := range read {
			found[u.ID] = u
		}
		// Customers are copied when they sign in and when they change: a crowd reads a buyer once.
		d.cache(ctx, slices.DeleteFunc(read, func(u *User) bool { return u.Role == auth.Customer })...)
	}
	until := d.cfg.Clock.Now().Add(localTTL)
	results := make([]batch.Result[*User], len(ids))
	for i, id := range ids {
		if results[i].Value = found[id]; found[id] == nil && err != nil {
			results[i].Err = err
			continue
		}
		d.local.Add(id, localUser{user: found[id], until: until})
	}
	return results
}

// fromRedis returns the users cached in Redis, and the first error of the others.
func (d *Directory) fromRedis(ctx context.Context, ids []id.User) (found map[id.User]*User, failed error) {
	pipe := d.cfg.Client.Pipeline()
	cmds := collect.Map(ids, func(id id.User) *redis.StringCmd { return pipe.HGet(ctx, d.key(id), "user") })
	redisconn.ExecEach(ctx, pipe)
	found = make(map[id.User]*User, len(ids))
	for i, id := range ids {
		u, err := d.opened(id, cmds[i])
		if failed == nil {
			failed = err
		}
		if u != nil {
			found[id] = u
		}
	}
	return found, failed
}

// opened decrypts the copy of a user in Redis; nil if there is none.
func (d *Directory) opened(id id.User, reply *redis.StringCmd) (*User, error) {
	sealed, err := reply.Bytes()
	if errors.Is(err, redis.Nil) || bytes.HasPrefix(sealed, []byte("{")) { // in clear, by a former version
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, _, err := d.sealer.Open(id.UUID(), sealed)
	if err != nil {
		return nil, fmt.Errorf("cached user: %w", err)
	}
	var u User
	if err := json.Unmarshal(text, &u); err != nil {
		return nil, fmt.Errorf("cached user: %w", err)
	}
	if u.ID != id || !u.Role.Valid() {
		return nil, errors.New("cached user is another one, or empty")
	}
	return &u, nil
}

// cache writes users read from Postgres to Redis, unless newer versions are there. An
// error is only logged: the cached copies expire by themselves.
func (d *Directory) cache(ctx context.Context, users ...*User) {
	var failed error
	runs := make([]redisconn.Run, 0, len(users))
	for _, u := range users {
		text, err := json.Marshal(u)
		if err == nil {
			text, err = d.sealer.Seal(u.ID.UUID(), text)
		}
		if err != nil {
			failed = err
			continue
		}
		life := customerTTL
		if u.Role != auth.Customer {
			life = staffTTL
		}
		runs = append(runs, redisconn.Run{Keys: []string{d.key(u.ID)}, Args: []any{u.Version, text, life.Milliseconds()}})
	}
	for _, cmd := range redisconn.RunEach(ctx, d.cfg.Client, cacheScript, runs) {
		if failed == nil {
			failed = cmd.Err()
		}
	}
	if failed != nil {
		d.cfg.Log.WarnContext(ctx, "user cache cannot be written", slog.Any("error", failed))
	}
}

func (d *Directory) key(id id.User) string { return d.cfg.Prefix + "user:" + id.String() }
