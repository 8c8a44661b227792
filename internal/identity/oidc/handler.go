package oidc

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/google/uuid"
	"golang.org/x/oauth2"

	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
)

const (
	// stateLife is how long a user may take at the provider.
	stateLife = 10 * time.Minute
	// maxTarget bounds the page after the sign-in, in bytes.
	maxTarget = 512
	// maxCode bounds the code of a provider, in bytes.
	maxCode = 4096
	// maxForm bounds the form that a provider lets the browser post, in bytes.
	maxForm = 16 << 10
	// maxStates bounds the sign-ins that a browser has begun and not ended, one per tab.
	maxStates = 5
	// stateName is the length of the part of a state that names its cookie.
	stateName = 8
)

// state is what the callback needs of the start. The browser has it in a sealed cookie, so
// that the callback belongs to the browser that started. Each sign-in has a cookie of its
// own: a browser may begin several in its tabs.
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
	mux.HandleFunc("POST /auth/oidc/{name}/callback", s.posted)
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
	to := s.target(r.URL.Query().Get("to"))
	found, err := s.discover(r.Context(), p)
	if err != nil {
		s.fail(w, r, p, to, err)
		return
	}
	st := state{
		Provider: p.Name, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		To: to, Expires: s.cfg.Clock.Now().Add(stateLife),
	}
	if err := s.keep(w, r, st); err != nil {
		s.fail(w, r, p, to, err)
		return
	}
	options := []oauth2.AuthCodeOption{gooidc.Nonce(st.Nonce), oauth2.S256ChallengeOption(st.Verifier)}
	if p.ResponseMode == responseForm {
		options = append(options, oauth2.SetAuthURLParam("response_mode", responseForm))
	}
	http.Redirect(w, r, s.oauth(p, found).AuthCodeURL(st.State, options...), http.StatusFound)
}

// posted turns a callback by POST (response_mode form_post) into one by GET: the cookie of
// the state is SameSite=Lax, so the browser does not send it with a POST from another site.
func (s *Service) posted(w http.ResponseWriter, r *http.Request) {
	p := s.providers[r.PathValue("name")]
	if p == nil {
		http.NotFound(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		s.fail(w, r, p, "", errForeign)
		return
	}
	query := url.Values{}
	for _, name := range []string{"code", "state", "error", "user"} {
		if value := r.PostForm.Get(name); value != "" {
			query.Set(name, value)
		}
	}
	http.Redirect(w, r, "/auth/oidc/"+p.Name+"/callback?"+query.Encode(), http.StatusSeeOther)
}

// callback signs in and sends the browser to the page from which it started.
func (s *Service) callback(w http.ResponseWriter, r *http.Request) {
	p := s.providers[r.PathValue("name")]
	if p == nil {
		http.NotFound(w, r)
		return
	}
	query := r.URL.Query()
	code := query.Get("code")
	st, err := s.kept(r, query.Get("state"))
	setCookie(w, r, query.Get("state"), "", -1)
	switch {
	case err != nil, st.Provider != p.Name, subtle.ConstantTimeCompare([]byte(st.State), []byte(query.Get("state"))) != 1,
		s.cfg.Clock.Now().After(st.Expires):
		s.fail(w, r, p, st.To, errors.Join(err, errForeign))
		return
	case query.Get("error") != "" || code == "" || len(code) > maxCode:
		s.fail(w, r, p, st.To, errDeclined)
		return
	}
	addr := auth.ClientAddr(r.Context())
	first, err := s.cfg.Accounts.AdmitExternal(r.Context(), addr, st.State, stateLife)
	if err != nil {
		s.fail(w, r, p, st.To, err)
		return
	}
	if !first { // the browser repeats a callback, which has signed in or said why not
		http.Redirect(w, r, st.To, http.StatusSeeOther)
		return
	}
	in, err := s.identity(r.Context(), p, st, code, postedName(query.Get("user")))
	if err != nil {
		s.fail(w, r, p, st.To, err)
		return
	}
	in.Addr = addr
	signed, err := s.cfg.Accounts.SignInExternal(r.Context(), in)
	if err != nil {
		s.fail(w, r, p, st.To, err)
		return
	}
	auth.NewCookie(w, auth.ClientFrom(r.Context()).Secure).Set(signed.Tokens.Refresh, signed.Tokens.RefreshExpiresAt)
	http.Redirect(w, r, st.To, http.StatusSeeOther)
}

// postedName returns the name in the field "user", which Apple sends with the first sign-in
// of a user. It is not signed, and is shown to its own user only.
func postedName(text string) string {
	var user struct {
		Name struct{ FirstName, LastName string }
	}
	if json.Unmarshal([]byte(text), &user) != nil {
		return ""
	}
	return strings.TrimSpace(user.Name.FirstName + " " + user.Name.LastName)
}

var (
	errForeign  = errors.New("the callback belongs to no sign-in of this browser")
	errDeclined = errors.New("the provider declined")
)

// fail sends the browser to the page of refused with a reason. Details are in the log only.
func (s *Service) fail(w http.ResponseWriter, r *http.Request, p *provider, to string, err error) {
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
	case errors.As(err, new(fault.Throttled)):
		why = "throttled"
	default:
		s.cfg.Log.WarnContext(r.Context(), "sign-in with a provider failed", slog.String("provider", p.Name),
			slog.Any("error", err))
	}
	http.Redirect(w, r, s.refused(to, why), http.StatusSeeOther) //nolint:gosec // a path of this server, or of an allowed origin
}

// cookieOwner is the authenticated owner of the sealed cookie: it has none.
var cookieOwner = uuid.Nil

// cookiePrefix is the prefix of the names of state cookies.
const cookiePrefix = "seckill_oidc_"

// cookieName returns the name of the cookie of a state.
func cookieName(r *http.Request, named string) string {
	name := cookiePrefix + named[:min(len(named), stateName)]
	if auth.ClientFrom(r.Context()).Secure {
		return "__Host-" + name
	}
	return name
}

// setCookie sends the cookie of a state; a negative age, in seconds, removes it.
func setCookie(w http.ResponseWriter, r *http.Request, named, value string, age int) {
	c := http.Cookie{ //nolint:gosec // Secure follows the request: the demo has no TLS
		Name: cookieName(r, named), Value: value, Path: "/auth/oidc/", MaxAge: age, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: auth.ClientFrom(r.Context()).Secure,
	}
	if c.Secure {
		c.Path = "/" // required by __Host-
	}
	http.SetCookie(w, &c)
}

// keep gives the browser a state, and removes the oldest ones beyond maxStates.
func (s *Service) keep(w http.ResponseWriter, r *http.Request, st state) error {
	text, err := json.Marshal(st)
	if err != nil {
		return err
	}
	sealed, err := s.sealer.Seal(cookieOwner, text)
	if err != nil {
		return err
	}
	var older []state
	for _, sent := range r.Cookies() {
		if _, name, found := strings.Cut(sent.Name, cookiePrefix); found {
			if begun, err := s.open(sent); err == nil && begun.Expires.After(s.cfg.Clock.Now()) {
				older = append(older, begun)
			} else {
				setCookie(w, r, name, "", -1)
			}
		}
	}
	slices.SortFunc(older, func(a, b state) int { return b.Expires.Compare(a.Expires) })
	for i := maxStates - 1; i < len(older); i++ {
		setCookie(w, r, older[i].State, "", -1)
	}
	setCookie(w, r, st.State, base64.RawURLEncoding.EncodeToString(sealed), int(stateLife/time.Second))
	return nil
}

// kept returns the state of a callback that the browser has.
func (s *Service) kept(r *http.Request, named string) (st state, err error) {
	sent, err := r.Cookie(cookieName(r, named))
	if err != nil {
		return st, err
	}
	return s.open(sent)
}

func (s *Service) open(sent *http.Cookie) (st state, err error) {
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
