package oidc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"seckill/internal/auth"
)

const (
	// maxProviders bounds the buttons on the sign-in page.
	maxProviders = 10
	// maxFile bounds the file of settings, in bytes.
	maxFile = 64 << 10
)

var nameFormat = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// Provider describes an OpenID provider, as the file of settings has it.
type Provider struct {
	Name             string               `json:"name"`   // in addresses: /auth/oidc/{name}/start
	Title            string               `json:"title"`  // on the button
	Issuer           string               `json:"issuer"` // https://accounts.example.com
	ClientID         string               `json:"clientId"`
	ClientSecretFile string               `json:"clientSecretFile"` // beside the file of settings when relative; "" = a public client
	Scopes           []string             `json:"scopes"`           // besides openid; default email, profile
	NameClaim        string               `json:"nameClaim"`        // default name
	ExternalIDClaim  string               `json:"externalIdClaim"`  // with the id of the customer in the shop's own systems; "" = none
	RoleClaim        string               `json:"roleClaim"`        // claim with a text or a list of texts; "" = everyone is a customer
	Roles            map[string]auth.Role `json:"roles"`            // value of RoleClaim → role; the highest one counts

	secret string
}

// ReadProviders reads the file of settings: a JSON array. Issuers need https, unless
// insecure.
func ReadProviders(file string, insecure bool) ([]Provider, error) {
	return ReadList(file, maxProviders, func(p *Provider) (string, error) {
		return p.Name, p.complete(filepath.Dir(file), insecure)
	})
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
	if len(list) > limit {
		return nil, fmt.Errorf("%s has %d entries, at most %d are possible", file, len(list), limit)
	}
	seen := map[string]bool{}
	for i := range list {
		name, err := complete(&list[i])
		if err != nil {
			return nil, fmt.Errorf("%s: entry %d (%s): %w", file, i+1, name, err)
		}
		if seen[name] {
			return nil, fmt.Errorf("%s: two entries are named %s", file, name)
		}
		seen[name] = true
	}
	return list, nil
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
	}
	if err := errors.Join(CheckAddress("issuer", p.Issuer, insecure), CheckRoles(p.Roles)); err != nil {
		return err
	}
	if p.Title == "" {
		p.Title = p.Name
	}
	if p.Scopes == nil {
		p.Scopes = []string{"email", "profile"}
	}
	if p.NameClaim == "" {
		p.NameClaim = "name"
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
