package oidc

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/google/uuid"
	"golang.org/x/oauth2"

	"seckill/internal/auth"
	"seckill/internal/fault"
)

const (
	// stateLife is how long a user may take at the provider.
	stateLife = 10 * time.Minute
	// maxPath bounds the path after the sign-in, in bytes.
	maxPath = 512
	// maxCode bounds the code of a provider, in bytes.
	maxCode = 4096
)

// state is what the callback needs of the start. The browser has it in a sealed cookie, so
// that the callback belongs to the browser that started.
type state struct {
	Provider string    `json:"p"`
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"`
	To       string    `json:"t"`
	Expires  time.Time `json:"e"`
}

// ServeHTTP serves the two addresses of each provider.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /auth/oidc/{name}/start", s.start)
	mux.HandleFunc("GET /auth/oidc/{name}/callback", s.callback)
	w.Header().Set("Cache-Control", "no-store")
	mux.ServeHTTP(w, r)
}

// start sends the browser to the provider.
func (s *Service) start(w http.ResponseWriter, r *http.Request) {
	p := s.providers[r.PathValue("name")]
	if p == nil {
		http.NotFound(w, r)
		return
	}
	found, err := s.discover(r.Context(), p)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	st := state{
		Provider: p.Name, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		To: local(r.URL.Query().Get("to")), Expires: s.cfg.Clock.Now().Add(stateLife),
	}
	if err := s.keep(w, r, st); err != nil {
		s.fail(w, r, p, err)
		return
	}
	to := s.oauth(p, found).AuthCodeURL(st.State, gooidc.Nonce(st.Nonce), oauth2.S256ChallengeOption(st.Verifier))
	http.Redirect(w, r, to, http.StatusFound)
}

// callback signs in and sends the browser to the page from which it started.
func (s *Service) callback(w http.ResponseWriter, r *http.Request) {
	p := s.providers[r.PathValue("name")]
	if p == nil {
		http.NotFound(w, r)
		return
	}
	st, err := s.kept(r)
	s.drop(w, r)
	query := r.URL.Query()
	code := query.Get("code")
	switch {
	case err != nil, st.Provider != p.Name, subtle.ConstantTimeCompare([]byte(st.State), []byte(query.Get("state"))) != 1,
		s.cfg.Clock.Now().After(st.Expires):
		s.fail(w, r, p, errors.Join(err, errForeign))
		return
	case query.Get("error") != "" || code == "" || len(code) > maxCode:
		s.fail(w, r, p, errDeclined)
		return
	}
	in, err := s.identity(r.Context(), p, st, code)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	in.Addr = auth.ClientAddr(r.Context())
	signed, err := s.cfg.Accounts.SignInExternal(r.Context(), in)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	auth.NewCookie(w, auth.ClientFrom(r.Context()).Secure).Set(signed.Tokens.Refresh, signed.Tokens.RefreshExpiresAt)
	http.Redirect(w, r, st.To, http.StatusSeeOther)
}

var (
	errForeign  = errors.New("the callback belongs to no sign-in of this browser")
	errDeclined = errors.New("the provider declined")
)

// fail sends the browser to the sign-in page with a reason. Details are in the log only.
func (s *Service) fail(w http.ResponseWriter, r *http.Request, p *provider, err error) {
	why := "failed"
	switch {
	case errors.Is(err, errForeign):
		why = "expired"
	case errors.Is(err, errDeclined):
		why = "declined"
	case fault.ReasonOf(err) == fault.AccountTaken:
		why = "taken"
	case fault.ReasonOf(err) == fault.InvalidInput:
		why = "email"
	case fault.ReasonOf(err) == fault.InvalidCredentials:
		why = "disabled"
	default:
		s.cfg.Log.WarnContext(r.Context(), "sign-in with a provider failed", slog.String("provider", p.Name), slog.Any("error", err))
	}
	http.Redirect(w, r, "/sign-in?oidc="+why, http.StatusSeeOther)
}

// cookieOwner is the authenticated owner of the sealed cookie: it has none.
var cookieOwner = uuid.Nil

func (s *Service) cookie(r *http.Request) *http.Cookie {
	c := &http.Cookie{Name: "seckill_oidc", Path: "/auth/oidc/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: auth.ClientFrom(r.Context()).Secure} //nolint:gosec // Secure follows the request
	if c.Secure {
		c.Name, c.Path = "__Host-"+c.Name, "/"
	}
	return c
}

func (s *Service) keep(w http.ResponseWriter, r *http.Request, st state) error {
	text, err := json.Marshal(st)
	if err != nil {
		return err
	}
	sealed, err := s.sealer.Seal(cookieOwner, text)
	if err != nil {
		return err
	}
	c := s.cookie(r) //nolint:gosec // Secure follows the request
	c.Value, c.MaxAge = base64.RawURLEncoding.EncodeToString(sealed), int(stateLife/time.Second)
	http.SetCookie(w, c)
	return nil
}

func (s *Service) kept(r *http.Request) (st state, err error) {
	sent, err := r.Cookie(s.cookie(r).Name)
	if err != nil {
		return st, err
	}
	sealed, err := base64.RawURLEncoding.DecodeString(sent.Value)
	if err != nil {
		return st, err
	}
	text, _, err := s.sealer.Open(cookieOwner, sealed)
	if err != nil {
		return st, err
	}
	return st, json.Unmarshal(text, &st)
}

func (s *Service) drop(w http.ResponseWriter, r *http.Request) {
	c := s.cookie(r) //nolint:gosec // Secure follows the request
	c.MaxAge = -1
	http.SetCookie(w, c)
}
