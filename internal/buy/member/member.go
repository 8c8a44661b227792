// Package member owns the lists of members that access rules name, and decides about the access of an
// account: package access has the rules, this one what they ask.
//
// A row names a member by account, by id in another system, or by the keyed hash of a contact, which an
// account has once its contact is verified. So a list may be filled before its members have
// accounts, and holds no addresses.
//
// A redeemed code makes the account the member of a list of its own, so that codes and lists are read
// together.
//
// The lists of an account are kept in memory for Fresh, or until it redeems a code: buyers without
// access cost at most one read of an index per process in that time, and placeOrder reads nothing.
package member

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"seckill/ent/accessmember"
	"seckill/internal/buy/access"
	"seckill/internal/buy/sale"
	"seckill/internal/identity/account"
	"seckill/internal/identity/person"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

const (
	// Fresh is how long the lists of an account are kept in memory: a change of a list is seen
	// everywhere after this time.
	Fresh = time.Minute
	// localSize bounds the accounts in memory, about 200 bytes each.
	localSize = 1 << 15
	// MaxLists bounds the lists of an installation, so that all are one answer.
	MaxLists = 100
	// MaxMembers bounds the rows of a list.
	MaxMembers = 1_000_000
	// MaxRows bounds the rows of one call.
	MaxRows = 1000
)

// Config configures a Service.
type Config struct {
	DB    *postgres.DB
	Users *account.Directory
	Names account.Names
	// Secrets are the keys of hashed contacts: the first makes them, all are looked up.
	Secrets  [][]byte
	Security *account.SecurityLog // records changes of lists
	// Revocations tell the other processes of an account that redeemed a code; nil = there are none.
	Revocations *auth.Revocations
	Clock       clock.Clock
}

// Service reads and changes lists. It is safe for concurrent use.
type Service struct {
	cfg     Config
	hashers []person.Hasher
	local   *lru.Cache[id.User, known]
	flight  singleflight.Group
	forgets atomic.Int64 // calls of forget: a read that began before one is not kept
}

// known are the lists of an account in memory, also those of its codes.
type known struct {
	members string // by which the account was looked up
	lists   []string
	until   time.Time
}

// New returns a Service.
func New(cfg Config) *Service {
	local, err := lru.New[id.User, known](localSize)
	if err != nil {
		panic(err) // only for a size below 1
	}
	s := &Service{cfg: cfg, local: local}
	for _, secret := range cfg.Secrets {
		s.hashers = append(s.hashers, person.NewHasher([][]byte{secret}))
	}
	if cfg.Revocations != nil {
		cfg.Revocations.OnUserChanged(s.forget)
	}
	return s
}

// Access returns the access of a user to a sale; ok is false for a sale without rules, which has no
// exceptions.
func (s *Service) Access(ctx context.Context, v *sale.Sale, user id.User) (a access.Access, ok bool, err error) {
	if len(v.Access) == 0 {
		return access.Access{}, false, nil
	}
	u, err := s.cfg.Users.User(ctx, user)
	if err == nil && u == nil {
		err = fault.New(fault.Unauthenticated, "the account is gone; sign in")
	}
	if err != nil {
		return access.Access{}, true, err
	}
	buyer := access.Buyer{Verified: u.Verified, Claims: u.Claims}
	if v.Access.Asks(access.List) || v.Access.Asks(access.ByCode) {
		if buyer.Lists, err = s.listsOf(ctx, u); err != nil {
			return access.Access{}, true, err
		}
		if code := codeOf(buyer.Lists, v.ID); code != (access.Code{}) {
			if batch := v.Codes.Valid(code); batch != nil {
				buyer.Code, buyer.CodeSource = code, batch.Source
			}
		}
	}
	a, ok = v.Access.Of(buyer, v.StartsAt)
	return a, ok, nil
}

// Share returns the share that an access rule keeps for a buyer; "" = none.
func Share(a access.Access) person.Key {
	if a.Rule == nil || a.Rule.Keep == 0 {
		return ""
	}
	return person.ShareOf(a.Index)
}

// Keys returns the keys under which the access of a buyer to a sale is counted: the share, and the code.
func Keys(v *sale.Sale, a access.Access) person.Keys {
	keys := person.Keys{Share: Share(a)}
	if batch := v.Codes.Find(a.Code.Batch); batch != nil {
		keys.Code = person.CodeOf(a.Code.Index(), batch.Uses)
	}
	return keys
}

// listsOf returns the lists of which an account is a member, at most Fresh old.
func (s *Service) listsOf(ctx context.Context, u *account.User) ([]string, error) {
	names := s.names(u)
	members := strings.Join(names, " ")
	if k, ok := s.local.Get(u.ID); ok && k.members == members && s.cfg.Clock.Now().Before(k.until) {
		return k.lists, nil
	}
	found, err, _ := s.flight.Do(u.ID.String(), func() (any, error) {
		began := s.forgets.Load()
		lists, err := s.cfg.DB.Ent.AccessMember.Query().Where(accessmember.MemberIn(names...)).
			Select(accessmember.FieldList).Strings(context.WithoutCancel(ctx)) // the first caller may cancel while others wait
		if err != nil {
			return nil, fmt.Errorf("read the lists of user %s: %w", u.ID, err)
		}
		slices.Sort(lists)
		lists = slices.Compact(lists)
		s.local.Add(u.ID, known{members: members, lists: lists, until: s.cfg.Clock.Now().Add(Fresh)})
		if s.forgets.Load() != began {
			s.local.Remove(u.ID)
		}
		return lists, nil
	})
	if err != nil {
		return nil, err
	}
	return found.([]string), nil
}

// names returns by what lists may name an account.
func (s *Service) names(u *account.User) []string {
	names := []string{byAccount(u.ID)}
	if u.ExternalID != "" {
		names = append(names, byExternalID(u.ExternalID))
	}
	if contact, ok := s.cfg.Names.Normalise(u.Account); ok && u.Verified {
		for _, h := range s.hashers {
			names = append(names, byContact(h, contact))
		}
	}
	return names
}

func byAccount(u id.User) string            { return "a:" + u.String() }
func byExternalID(externalID string) string { return "x:" + externalID }

// byContact returns the name of a normalised contact in all lists: its hash depends on no sale.
func byContact(h person.Hasher, contact string) string {
	return "c:" + string(h.Contact(id.Sale{}, contact, true))
}
