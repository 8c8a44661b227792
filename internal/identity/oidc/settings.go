package oidc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"seckill/internal/identity/account"
	"seckill/internal/platform/auth"
)

const (
	// maxProviders bounds the buttons on the sign-in page.
	maxProviders = 10
	// maxFile bounds the file of settings, in bytes.
	maxFile = 64 << 10
)

var claimName = regexp.MustCompile(`^[!-<>-~]{1,64}$`)

var nameFormat = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// Provider describes an OpenID provider, as the file of settings has it.
type Provider struct {
	// in addresses: /auth/oidc/{name}/start; in TOML the name of the table
	Name     string `json:"name" toml:"-"`
	Title    string `json:"title" toml:"title"`   // on the button
	Issuer   string `json:"issuer" toml:"issuer"` // https://accounts.example.com
	ClientID string `json:"clientId" toml:"client_id"`
	// beside the file of settings when relative; "" = a public client
	ClientSecretFile string `json:"clientSecretFile" toml:"client_secret_file"`
	// besides openid; default email, profile
	Scopes    []string `json:"scopes" toml:"scopes"`
	NameClaim string   `json:"nameClaim" toml:"name_claim"` // default name
	// true when the address is verified; default email_verified
	VerifiedClaim string `json:"verifiedClaim" toml:"verified_claim"`
	// addresses count as verified without VerifiedClaim
	TrustEmail   bool   `json:"trustEmail" toml:"trust_email"`
	ResponseMode string `json:"responseMode" toml:"response_mode"` // query (default) or form_post
	// basic or post; default: the first that the provider supports
	TokenAuth string `json:"tokenAuth" toml:"token_auth"`
	// with the id of the customer in the shop's own systems; "" = none
	ExternalIDClaim string `json:"externalIdClaim" toml:"external_id_claim"`
	// texts or lists of texts that access rules of sales may name, as tier; kept with the account
	Claims []string `json:"claims" toml:"claims"`
	// claim with a text or a list of texts; "" = everyone is a customer
	RoleClaim string               `json:"roleClaim" toml:"role_claim"`
	Roles     map[string]auth.Role `json:"roles" toml:"roles"` // value of RoleClaim → role; the highest one counts

	secret string
}

// Values of Provider.ResponseMode and Provider.TokenAuth.
const (
	responseQuery = "query"
	responseForm  = "form_post"
	tokenBasic    = "basic"
	tokenPost     = "post"
)

// quirk is what a public provider does differently from the defaults. Settings of an entry
// have priority.
type quirk struct {
	issuer        string // begins with
	scopes        []string
	verifiedClaim string
	responseMode  string
	tokenAuth     string
}

// quirks lists the public providers that need other settings than the defaults.
//
//   - Apple answers by POST when it is asked for an address or a name, sends the name only in
//     that form, and takes the secret in the body only:
//     developer.apple.com/documentation/signinwithapplerestapi
//   - Microsoft Entra ID has no email_verified. Its optional claim xms_edov says that the
//     domain's owner is verified: learn.microsoft.com/entra/identity-platform/optional-claims-reference
var quirks = []quirk{
	{issuer: "https://appleid.apple.com", scopes: []string{"email", "name"}, responseMode: responseForm,
		tokenAuth: tokenPost},
	{issuer: microsoft, verifiedClaim: "xms_edov"},
}

const microsoft = "https://login.microsoftonline.com/"

// sharedTenants are the addresses of Microsoft that stand for any tenant: the issuer of
// their tokens differs by user.
var sharedTenants = []string{"common", "organizations"}

// jsonArray begins a file of providers in JSON. A table of TOML has a name in its brackets.
var jsonArray = regexp.MustCompile(`^\s*\[\s*[\[{\]]`)

// ReadProviders reads the file of settings: a JSON array, or TOML with a table [oidc.NAME]
// for each provider, in which other keys and tables are left out of account. Issuers need
// https, unless insecure.
func ReadProviders(file string, insecure bool) ([]Provider, error) {
	complete := func(p *Provider) (string, error) { return p.Name, p.complete(filepath.Dir(file), insecure) }
	text, err := readBounded(file)
	if err != nil {
		return nil, err
	}
	if jsonArray.MatchString(text) {
		return ReadList(file, maxProviders, complete)
	}
	var tables struct {
		OIDC map[string]Provider `toml:"oidc"`
	}
	meta, err := toml.Decode(text, &tables)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, key := range meta.Undecoded() {
		if len(key) > 1 && key[0] == "oidc" {
			return nil, fmt.Errorf("%s: there is no setting %s", file, key)
		}
	}
	var list []Provider
	for _, key := range meta.Keys() { // in the order of the file
		if len(key) == 2 && key[0] == "oidc" {
			p := tables.OIDC[key[1]]
			p.Name = key[1]
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: needs a JSON array of providers, or tables [oidc.NAME]", file)
	}
	return list, completeAll(file, maxProviders, list, complete)
}

// ReadList reads a file with a JSON array of at most limit entries. complete checks an
// entry, sets its defaults, and returns its name, which no other entry may have.
func ReadList[T any](file string, limit int, complete func(*T) (name string, err error)) ([]T, error) {
	text, err := readBounded(file)
	if err != nil {
		return nil, err
	}
	var list []T
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, completeAll(file, limit, list, complete)
}

func completeAll[T any](file string, limit int, list []T, complete func(*T) (name string, err error)) error {
	if len(list) > limit {
		return fmt.Errorf("%s has %d entries, at most %d are possible", file, len(list), limit)
	}
	seen := map[string]bool{}
	for i := range list {
		name, err := complete(&list[i])
		if err != nil {
			return fmt.Errorf("%s: entry %d (%s): %w", file, i+1, name, err)
		}
		if seen[name] {
			return fmt.Errorf("%s: two entries are named %s", file, name)
		}
		seen[name] = true
	}
	return nil
}

// CheckAddress returns an error unless an address uses https, or http where insecure
// addresses are allowed.
func CheckAddress(field, address string, insecure bool) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "https" && !(insecure && u.Scheme == "http")) {
		return fmt.Errorf("%s: needs an https address", field)
	}
	return nil
}

// CheckRoles returns an error for a value that is no role.
func CheckRoles(roles map[string]auth.Role) error {
	for value, role := range roles {
		if !role.Valid() {
			return fmt.Errorf("roles: %q is no role: choose CUSTOMER, OPERATOR or ADMIN for %q", role, value)
		}
	}
	return nil
}

// complete checks a provider, sets defaults and reads its secret.
func (p *Provider) complete(folder string, insecure bool) error {
	switch {
	case !nameFormat.MatchString(p.Name):
		return errors.New("name: needs 1 to 32 characters of a-z, 0-9 and -")
	case p.ClientID == "":
		return errors.New("clientId: is missing")
	case len(p.Claims) > account.MaxClaims || !allMatch(claimName, p.Claims):
		return fmt.Errorf("claims: needs at most %d names of 1 to 64 printable ASCII characters without =", account.MaxClaims)
	}
	if err := errors.Join(CheckAddress("issuer", p.Issuer, insecure), CheckRoles(p.Roles)); err != nil {
		return err
	}
	if tenant, _, _ := strings.Cut(strings.TrimPrefix(p.Issuer, microsoft), "/"); slices.Contains(sharedTenants, tenant) {
		return fmt.Errorf("issuer: %s is an address for all tenants: use that of your tenant, or of private accounts, "+
			microsoft+"9188040d-6c67-4c5b-b112-36a304b66dad/v2.0", p.Issuer)
	}
	var own quirk
	if i := slices.IndexFunc(quirks, func(q quirk) bool { return strings.HasPrefix(p.Issuer, q.issuer) }); i >= 0 {
		own = quirks[i]
	}
	p.Title = cmp.Or(p.Title, p.Name)
	p.NameClaim = cmp.Or(p.NameClaim, "name")
	p.VerifiedClaim = cmp.Or(p.VerifiedClaim, own.verifiedClaim, "email_verified")
	p.ResponseMode = cmp.Or(p.ResponseMode, own.responseMode, responseQuery)
	p.TokenAuth = cmp.Or(p.TokenAuth, own.tokenAuth)
	if p.Scopes == nil {
		p.Scopes = own.scopes
	}
	if p.Scopes == nil {
		p.Scopes = []string{"email", "profile"}
	}
	switch {
	case p.ResponseMode != responseQuery && p.ResponseMode != responseForm:
		return fmt.Errorf("responseMode: needs %s or %s", responseQuery, responseForm)
	case p.TokenAuth != "" && p.TokenAuth != tokenBasic && p.TokenAuth != tokenPost:
		return fmt.Errorf("tokenAuth: needs %s or %s", tokenBasic, tokenPost)
	}
	if p.ClientSecretFile == "" {
		return nil
	}
	file := p.ClientSecretFile
	if !filepath.IsAbs(file) {
		file = filepath.Join(folder, file)
	}
	secret, err := readBounded(file)
	p.secret = strings.TrimSpace(secret)
	return err
}

func readBounded(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if info.Size() > maxFile {
		return "", fmt.Errorf("%s has %d bytes, at most %d are read", file, info.Size(), maxFile)
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

// role returns the role of a user; nil = the provider does not decide about roles.
func (p *Provider) role(claims map[string]any) *auth.Role {
	if p.RoleClaim == "" {
		return nil
	}
	role := HighestRole(claims[p.RoleClaim], p.Roles)
	return &role
}

func allMatch(format *regexp.Regexp, texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !format.MatchString(text) })
}

// kept returns the claims that access rules may name.
func (p *Provider) kept(claims map[string]any) account.Claims {
	stated := make(map[string][]string, len(p.Claims))
	for _, name := range p.Claims {
		stated[name] = texts(claims[name])
	}
	return account.KeptClaims(stated)
}

// HighestRole returns the highest role that a claim's values are mapped to.
func HighestRole(claim any, roles map[string]auth.Role) auth.Role {
	role := auth.Customer
	for _, value := range texts(claim) {
		if mapped, ok := roles[value]; ok && mapped.AtLeast(role) {
			role = mapped
		}
	}
	return role
}

// texts returns the texts of a claim: a text, or a list.
func texts(claim any) (out []string) {
	switch v := claim.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			if text, ok := one.(string); ok {
				out = append(out, text)
			}
		}
	}
	return out
}

// IsTrue reports whether a claim says yes: true, and the texts and numbers that some
// providers send instead (Apple and Amazon Cognito "true", Microsoft "1" and 1).
func IsTrue(claim any) bool {
	switch v := claim.(type) {
	case bool:
		return v
	case string:
		return strings.EqualFold(v, "true") || v == "1"
	case float64:
		return v == 1
	case json.Number:
		return v == "1"
	}
	return false
}
