package account

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/redisconn"
)

const (
	localTTL = 4 * time.Second // in the process
	// of operators and administrators in Redis: a role removed by SQL stops working within localTTL + staffTTL
	staffTTL    = 4 * time.Second
	customerTTL = 10 * time.Minute
	localSize   = 1 << 15 // users, about 300 bytes each
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
	flight singleflight.Group
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
	return &Directory{cfg: cfg, sealer: auth.NewSealer(cfg.Keys, "cached users"), local: local}
}

// User returns a user; nil if there is none.
func (d *Directory) User(ctx context.Context, id id.User) (*User, error) {
	if known, ok := d.local.Get(id); ok && d.cfg.Clock.Now().Before(known.until) {
		return known.user, nil
	}
	found, err, _ := d.flight.Do(id.String(), func() (any, error) {
		return d.fetch(context.WithoutCancel(ctx), id) // the first caller may cancel while others wait
	})
	if err != nil {
		return nil, err
	}
	return found.(*User), nil
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

func (d *Directory) fetch(ctx context.Context, id id.User) (*User, error) {
	u, err := d.fromRedis(ctx, id)
	if err != nil {
		d.cfg.Log.WarnContext(ctx, "user cache cannot be read", slog.Any("error", err)) // Postgres is read instead
	}
	if u == nil {
		if u, err = d.cfg.Store.User(ctx, id); err != nil {
			return nil, err
		}
		if u != nil {
			d.cache(ctx, u)
		}
	}
	d.local.Add(id, localUser{user: u, until: d.cfg.Clock.Now().Add(localTTL)})
	return u, nil
}

// fromRedis returns the user cached in Redis; nil if there is none.
func (d *Directory) fromRedis(ctx context.Context, id id.User) (*User, error) {
	sealed, err := d.cfg.Client.HGet(ctx, d.key(id), "user").Bytes()
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

// cache writes a user read from Postgres to Redis, unless a newer version is there. An
// error is only logged: the cached copy expires by itself.
func (d *Directory) cache(ctx context.Context, u *User) {
	text, err := json.Marshal(u)
	if err == nil {
		text, err = d.sealer.Seal(u.ID.UUID(), text)
	}
	if err == nil {
		life := customerTTL
		if u.Role != auth.Customer {
			life = staffTTL
		}
		err = cacheScript.Run(ctx, d.cfg.Client, []string{d.key(u.ID)}, u.Version, text, life.Milliseconds()).Err()
	}
	if err != nil {
		d.cfg.Log.WarnContext(ctx, "user cache cannot be written", slog.Any("error", err))
	}
}

func (d *Directory) key(id id.User) string { return d.cfg.Prefix + "user:" + id.String() }
