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
	RoleClaim        string               `json:"roleClaim"`        // claim with a text or a list of texts; "" = everyone is a customer
	Roles            map[string]auth.Role `json:"roles"`            // value of RoleClaim → role; the highest one counts

	secret string
}

// ReadProviders reads the file of settings: a JSON array. Issuers need https, unless
// insecure.
func ReadProviders(file string, insecure bool) ([]Provider, error) {
	text, err := readBounded(file)
	if err != nil {
		return nil, err
	}
	var providers []Provider
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&providers); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(providers) > maxProviders {
		return nil, fmt.Errorf("%s has %d providers, at most %d are possible", file, len(providers), maxProviders)
	}
	seen := map[string]bool{}
	for i := range providers {
		p := &providers[i]
		if err := p.complete(filepath.Dir(file), insecure); err != nil {
			return nil, fmt.Errorf("%s: provider %d (%s): %w", file, i+1, p.Name, err)
		}
		if seen[p.Name] {
			return nil, fmt.Errorf("%s: two providers are named %s", file, p.Name)
		}
		seen[p.Name] = true
	}
	return providers, nil
}

// complete checks a provider, sets defaults and reads its secret.
func (p *Provider) complete(folder string, insecure bool) error {
	issuer, err := url.Parse(p.Issuer)
	switch {
	case !nameFormat.MatchString(p.Name):
		return errors.New("name: needs 1 to 32 characters of a-z, 0-9 and -")
	case err != nil || issuer.Host == "" || (issuer.Scheme != "https" && !(insecure && issuer.Scheme == "http")):
		return errors.New("issuer: needs an https address")
	case p.ClientID == "":
		return errors.New("clientId: is missing")
	}
	for value, role := range p.Roles {
		if !role.Valid() {
			return fmt.Errorf("roles: %q is no role: choose CUSTOMER, OPERATOR or ADMIN for %q", role, value)
		}
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

// role returns the highest role of the claim's values; nil = the provider does not decide
// about roles.
func (p *Provider) role(claims map[string]any) *auth.Role {
	if p.RoleClaim == "" {
		return nil
	}
	role := auth.Customer
	for _, value := range texts(claims[p.RoleClaim]) {
		if mapped, ok := p.Roles[value]; ok && mapped.AtLeast(role) {
			role = mapped
		}
	}
	return &role
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
