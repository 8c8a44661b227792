package app

import (
	"fmt"
	"net"
	"time"

	"seckill/internal/gate/preload"
	"seckill/internal/identity/account"
	"seckill/internal/identity/oidc"
	"seckill/internal/identity/oidc/issuer"
	"seckill/internal/identity/servicetoken"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/config"
)

func signingKeys(cfg *config.Config) (auth.Keys, error) {
	current, previous, err := cfg.SigningKeys()
	if err != nil {
		return auth.Keys{}, fmt.Errorf("jwt key: %w", err)
	}
	older := collect.Map(previous, func(k config.Key) auth.Key { return auth.Key(k) })
	return auth.NewKeys(auth.Key(current), older...)
}

// leeway is added to the lifetime of access tokens to set how long ended sessions are
// remembered.
const leeway = time.Minute

// accounts holds users, sessions and tokens.
type accounts struct {
	store         *account.Store
	service       *account.Service
	tokens        *auth.Tokens
	revocations   *auth.Revocations
	security      *account.SecurityLog
	serviceTokens *servicetoken.Service
	directory     *account.Directory
	issuers       *issuer.Service // whose access tokens are accepted; nil = there are none
}

type accountParts struct {
	admission admission
	mailing   mailing
	keys      auth.Keys
}

func newAccounts(b base, g gates, in accountParts) (accounts, error) {
	adm, m, keys := in.admission, in.mailing, in.keys
	store := account.NewStore(b.svc.db, b.clock, names(b.cfg))
	directory := account.NewDirectory(account.DirectoryConfig{
		Store: store, Client: b.svc.redis.Script, Prefix: b.keys.Prefix, Keys: keys, Clock: b.clock, Log: b.log,
		StaffTOTP: b.cfg.StaffTOTP == config.StaffTOTPRequired,
	})
	tail := b.svc.redis.NewBlocking()
	b.svc.onClose(tail.Close)
	revocations := auth.NewRevocations(auth.RevocationsConfig{
		Client: b.svc.redis.Cmd, Tail: tail, Prefix: b.keys.Prefix, Keep: b.cfg.AccessTokenTTL + leeway,
		Clock: b.clock, Log: b.log, Store: store, Release: adm.queue.SignedOut,
	})
	revocations.OnUserChanged(directory.Forget)
	tokens, err := auth.NewTokens(auth.TokensConfig{
		Keys: keys, AccessLife: b.cfg.AccessTokenTTL, Clock: b.clock, Sessions: revocations, Roles: directory,
	})
	if err != nil {
		return accounts{}, err
	}
	security := account.NewSecurityLog(b.svc.db, b.clock, b.log)
	security.Timeout = b.scaled(account.EventTimeout)
	admin := account.NewAdmin(account.AdminConfig{
		Store: store, Directory: directory, Revocations: revocations, Security: security, Log: b.log, Mail: m.outbox,
		Texts: m.texts,
	})
	service, err := account.New(account.Config{
		DB: b.svc.db, Redis: b.svc.redis.Script, Prefix: b.keys.Prefix, Keys: keys, Tokens: tokens,
		Revocations: revocations, Directory: directory, Captchas: adm.captchas, Limits: adm.limits,
		Names: names(b.cfg), Clock: b.clock, Log: b.log, Idle: b.cfg.RefreshTokenTTL, Admin: admin, Mail: m.outbox,
		Texts:     m.texts,
		Purchases: preload.Deletions{Catalog: g.catalog, Gate: g.gate, Persons: b.persons},
	})
	if err != nil {
		return accounts{}, err
	}
	serviceTokens := servicetoken.New(servicetoken.Config{
		DB: b.svc.db, Revocations: revocations, Security: security, Outbox: b.outbox,
		Timeout: b.scaled(servicetoken.WriteTimeout), Clock: b.clock, Log: b.log,
	})
	a := accounts{
		store: store, service: service, tokens: tokens, revocations: revocations, security: security,
		serviceTokens: serviceTokens,
		directory:     directory, issuers: nil,
	}
	a.issuers, err = newIssuers(b, a)
	return a, err
}

// newProviders returns the sign-in with other providers; nil without the setting.
func newProviders(b base, in accounts, keys auth.Keys, l net.Listener) (*oidc.Service, error) {
	if b.cfg.OIDC == "" || !b.roles.API {
		return nil, nil // no setting, no providers
	}
	providers, err := oidc.ReadProviders(b.cfg.OIDC, !b.cfg.Production())
	if err != nil {
		return nil, fmt.Errorf("SECKILL_OIDC: %w", err)
	}
	return oidc.New(oidc.Config{
		Providers: providers, Address: baseURL(b.cfg, l), Keys: keys, Accounts: in.service,
		Returns: b.storefronts(baseURL(b.cfg, l)),
		Timeout: b.scaled(oidc.RequestTimeout), Clock: b.clock, Log: b.log,
	}), nil
}

// newIssuers returns the verifier of access tokens of other systems; nil without the
// setting.
func newIssuers(b base, in accounts) (*issuer.Service, error) {
	if b.cfg.TokenIssuers == "" || !b.roles.API {
		return nil, nil // no setting, no issuers
	}
	issuers, err := issuer.Read(b.cfg.TokenIssuers, !b.cfg.Production())
	if err != nil {
		return nil, fmt.Errorf("SECKILL_TOKEN_ISSUERS: %w", err)
	}
	s, err := issuer.New(issuer.Config{
		Issuers: issuers, Accounts: in.service, Sessions: in.revocations, Roles: in.directory,
		Cached: b.cfg.AccessTokenTTL, Timeout: b.scaled(issuer.RequestTimeout), Clock: b.clock, Log: b.log,
	})
	if err != nil {
		return nil, err
	}
	b.svc.onClose(s.Close)
	return s, nil
}
