package app

import (
	"context"
	"fmt"
	"net"

	"seckill/internal/account"
	"seckill/internal/auth"
	"seckill/internal/oidc"
	"seckill/internal/oidc/issuer"
	"seckill/internal/server"
)

// newProviders returns the sign-in with other providers; nil without the setting.
func newProviders(b base, in accounts, keys auth.Keys, l net.Listener) (*oidc.Service, error) {
	if b.cfg.OIDC == "" || !b.roles.API {
		return nil, nil //nolint:nilnil // no setting, no providers
	}
	providers, err := oidc.ReadProviders(b.cfg.OIDC, !b.cfg.Production())
	if err != nil {
		return nil, fmt.Errorf("SECKILL_OIDC: %w", err)
	}
	return oidc.New(oidc.Config{
		Providers: providers, Address: baseURL(b.cfg, l), Keys: keys, Secure: secure(b.cfg), Clock: b.clock, Log: b.log,
		SignIn: func(ctx context.Context, user account.External) (*account.SignedIn, error) {
			user.Addr = server.ClientAddr(ctx)
			return in.service.SignInExternal(ctx, user)
		},
	}), nil
}

// newIssuers returns the verifier of access tokens of other systems; nil without the
// setting.
func newIssuers(b base, in accounts) (*issuer.Service, error) {
	if b.cfg.TokenIssuers == "" || !b.roles.API {
		return nil, nil //nolint:nilnil // no setting, no issuers
	}
	issuers, err := issuer.Read(b.cfg.TokenIssuers, !b.cfg.Production())
	if err != nil {
		return nil, fmt.Errorf("SECKILL_TOKEN_ISSUERS: %w", err)
	}
	s, err := issuer.New(issuer.Config{
		Issuers: issuers, Admit: in.service.AdmitHolder, Revoked: in.revocations.Revoked, Role: in.directory.Role,
		Cached: b.cfg.AccessTokenTTL, Clock: b.clock, Log: b.log,
	})
	if err != nil {
		return nil, err
	}
	b.svc.onClose(s.Close)
	return s, nil
}
