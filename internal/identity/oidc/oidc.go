// Package oidc signs users in with the accounts of other providers: OpenID Connect, the
// authorization code flow with PKCE.
//
//	/auth/oidc/{name}/start ──► provider ──► /auth/oidc/{name}/callback ──► session cookie
//
// It owns the providers and the state between the two requests, which is sealed in a
// cookie. Users and sessions belong to package account.
package oidc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"seckill/internal/identity/account"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/origin"
)

const (
	// RequestTimeout bounds one request to a provider.
	RequestTimeout = 5 * time.Second
	// maxAnswer bounds an answer of a provider, in bytes.
	maxAnswer = 1 << 20
	// discoverEvery is the least pause between two attempts to reach a provider that was
	// not reached.
	discoverEvery = 5 * time.Second
)

// algorithms are the signatures of id tokens that are accepted.
var algorithms = []string{gooidc.RS256, gooidc.ES256, gooidc.PS256, gooidc.EdDSA}

// Config holds the dependencies of a Service.
type Config struct {
	Providers []Provider
	Address   string     // public address of the shop, without a slash at its end
	Returns   origin.Set // besides paths of the shop, where the browser may be sent after the sign-in
	Keys      auth.Keys
	Accounts  *account.Service // opens sessions for users of providers
	Timeout   time.Duration    // of one request to a provider; 0 = RequestTimeout
	Clock     clock.Clock
	Log       *slog.Logger
}

// Service serves /auth/oidc/. It is safe for concurrent use.
type Service struct {
	cfg       Config
	sealer    auth.Sealer
	client    *http.Client
	providers map[string]*provider
}

// New returns a Service. It makes no request.
func New(cfg Config) *Service {
	s := &Service{
		cfg: cfg, sealer: auth.NewSealer(cfg.Keys, "oidc sign-in"), providers: map[string]*provider{},
		client: &http.Client{Timeout: cmp.Or(cfg.Timeout, RequestTimeout), Transport: Bounded{Next: http.DefaultTransport}},
	}
	for _, p := range cfg.Providers {
		s.providers[p.Name] = &provider{Provider: p}
	}
	return s
}

// provider is a Provider with what it says about itself.
type provider struct {
	Provider

	mu       sync.Mutex
	found    *gooidc.Provider // guarded by mu; nil = not reached yet
	failed   error            // guarded by mu; of the last attempt
	failedAt time.Time        // guarded by mu
}

// discover returns the endpoints and keys of a provider. One caller at a time asks it.
func (s *Service) discover(ctx context.Context, p *provider) (*gooidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := s.cfg.Clock.Now()
	if p.found != nil {
		return p.found, nil
	}
	if p.failed != nil && now.Sub(p.failedAt) < discoverEvery {
		return nil, p.failed
	}
	// The keys are read again with this context, long after this request.
	found, err := gooidc.NewProvider(gooidc.ClientContext(context.WithoutCancel(ctx), s.client), p.Issuer)
	if err != nil {
		p.failed, p.failedAt = fmt.Errorf("ask provider %s: %w", p.Name, err), now
		return nil, p.failed
	}
	p.found = found
	return found, nil
}

func (s *Service) oauth(p *provider, found *gooidc.Provider) *oauth2.Config {
	endpoint := found.Endpoint()
	endpoint.AuthStyle = p.tokenAuth(found)
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.secret, Endpoint: endpoint,
		RedirectURL: s.cfg.Address + "/auth/oidc/" + p.Name + "/callback",
		Scopes:      append([]string{gooidc.ScopeOpenID}, p.Scopes...),
	}
}

// tokenAuth returns where the secret goes in a request for tokens. It is decided in advance,
// because a try of one way and then the other would use up the code at some providers.
func (p *provider) tokenAuth(found *gooidc.Provider) oauth2.AuthStyle {
	style := p.TokenAuth
	if style == "" {
		var says struct {
			Methods []string `json:"token_endpoint_auth_methods_supported"`
		}
		_ = found.Claims(&says) // without a list, basic is the default: OpenID Connect Discovery 1.0, 3
		if len(says.Methods) > 0 && !slices.Contains(says.Methods, "client_secret_basic") {
			style = tokenPost
		}
	}
	if style == tokenPost || p.secret == "" {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// identity exchanges the code of a callback and returns the user that the provider names.
// name is the name that the provider sent beside the code; "" = none.
func (s *Service) identity(ctx context.Context, p *provider, st state, code, name string) (account.External, error) {
	found, err := s.discover(ctx, p)
	if err != nil {
		return account.External{}, err
	}
	ctx = gooidc.ClientContext(ctx, s.client)
	token, err := s.oauth(p, found).Exchange(ctx, code, oauth2.VerifierOption(st.Verifier))
	if err != nil {
		return account.External{}, refusedBy(p, err)
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := found.Verifier(&gooidc.Config{ClientID: p.ClientID, SupportedSigningAlgs: algorithms,
		Now: s.cfg.Clock.Now}).Verify(ctx, raw)
	if err != nil {
		return account.External{}, refusedBy(p, err)
	}
	if verified.Nonce != st.Nonce {
		return account.External{}, refusedBy(p, errors.New("another nonce"))
	}
	claims := map[string]any{}
	if err := verified.Claims(&claims); err != nil {
		return account.External{}, refusedBy(p, err)
	}
	if _, there := claims["email"]; !there { // many providers have it at their userinfo endpoint only
		if err := s.userInfo(ctx, found, token, verified.Subject, claims); err != nil {
			return account.External{}, refusedBy(p, err)
		}
	}
	in := account.External{Issuer: verified.Issuer, Subject: verified.Subject, Role: p.role(claims),
		Claims: p.kept(claims)}
	in.Name, _ = claims[p.NameClaim].(string)
	in.Name = cmp.Or(in.Name, name)
	in.ExternalID, _ = claims[p.ExternalIDClaim].(string)
	if p.TrustEmail || IsTrue(claims[p.VerifiedClaim]) {
		in.Email, _ = claims["email"].(string)
	}
	return in, nil
}

// userInfo adds the claims of the userinfo endpoint. Those of the id token count more.
func (s *Service) userInfo(ctx context.Context, found *gooidc.Provider, token *oauth2.Token, subject string,
	claims map[string]any) error {
	if found.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return err
	}
	if info.Subject != subject {
		return errors.New("userinfo of another subject")
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return err
	}
	for name, value := range more {
		if _, there := claims[name]; !there {
			claims[name] = value
		}
	}
	return nil
}

func refusedBy(p *provider, err error) error { return fmt.Errorf("sign-in with %s: %w", p.Name, err) }

// Bounded limits the answers of providers to a megabyte.
type Bounded struct{ Next http.RoundTripper }

// RoundTrip sends a request.
func (b Bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.Next.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}

// Button is a provider on the sign-in page.
type Button struct{ Title, Path string }

// Buttons returns the providers in the order of the settings. A nil Service has none.
func (s *Service) Buttons() []Button {
	if s == nil {
		return nil
	}
	return collect.Map(s.cfg.Providers, func(p Provider) Button {
		return Button{Title: p.Title, Path: "/auth/oidc/" + p.Name + "/start"}
	})
}

// target returns where to go after the sign-in: a path of this server, or an address of an
// allowed origin.
func (s *Service) target(to string) string {
	if len(to) > maxTarget || !s.cfg.Returns.Has(to) && (!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.ContainsAny(to, "\\\r\n\t")) {
		return "/"
	}
	return to
}

// refused returns where to go with a reason after a sign-in that failed: back to a page of
// another origin, else to the shop's own.
func (s *Service) refused(to, why string) string {
	page, err := url.Parse(to)
	if err != nil || !s.cfg.Returns.Has(to) {
		return "/sign-in?oidc=" + why
	}
	query := page.Query()
	query.Set("oidc", why)
	page.RawQuery = query.Encode()
	return page.String()
}
